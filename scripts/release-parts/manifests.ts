// Manifests of package managers for the command line: Homebrew, Scoop, krew. Pure.
import { toYaml } from '../../shared/adapters/yaml.ts'

export interface Download {
  url: string
  sha256: string
}
export type ClientPlatform = 'linux_amd64' | 'linux_arm64' | 'darwin_amd64' | 'darwin_arm64' | 'windows_amd64'
export type ClientDownloads = Readonly<Record<ClientPlatform, Download>>

const ABOUT = 'GitOps for fleets of Kubernetes clusters that are often offline'
const HOMEPAGE = 'https://skerry.dev'

export function homebrewFormula(version: string, downloads: ClientDownloads): string {
  const on = (system: 'macos' | 'linux', name: 'darwin' | 'linux') => `  on_${system} do
    on_arm do
      url "${downloads[`${name}_arm64`].url}"
      sha256 "${downloads[`${name}_arm64`].sha256}"
    end
    on_intel do
      url "${downloads[`${name}_amd64`].url}"
      sha256 "${downloads[`${name}_amd64`].sha256}"
    end
  end
`
  return `class Skerry < Formula
  desc "${ABOUT}"
  homepage "${HOMEPAGE}"
  version "${version}"
  license "Apache-2.0"

${on('macos', 'darwin')}
${on('linux', 'linux')}
  def install
    bin.install "skerry"
    bash_completion.install "completions/skerry.bash" => "skerry"
    zsh_completion.install "completions/_skerry"
    fish_completion.install "completions/skerry.fish"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/skerry version --client")
  end
end
`
}

export const scoopManifest = (version: string, { windows_amd64: { url, sha256 } }: ClientDownloads): object => ({
  ...{ version, description: ABOUT, homepage: HOMEPAGE, license: 'Apache-2.0' },
  architecture: { '64bit': { url, hash: sha256 } },
  bin: 'skerry.exe',
})

const KREW_FILES: Readonly<Record<ClientPlatform, string>> = {
  linux_amd64: 'skerry',
  linux_arm64: 'skerry',
  darwin_amd64: 'skerry',
  darwin_arm64: 'skerry',
  windows_amd64: 'skerry.exe',
}

export function krewManifest(version: string, downloads: ClientDownloads): string {
  const platforms = (Object.keys(KREW_FILES) as ClientPlatform[]).map((platform) => {
    const [os, arch] = platform.split('_')
    const file = KREW_FILES[platform]
    return {
      selector: { matchLabels: { os, arch } },
      uri: downloads[platform].url,
      sha256: downloads[platform].sha256,
      files: [
        { from: file, to: '.' },
        { from: 'LICENSE', to: '.' },
      ],
      bin: file,
    }
  })
  return toYaml({
    ...{ apiVersion: 'krew.googlecontainertools.github.com/v1alpha2', kind: 'Plugin', metadata: { name: 'skerry' } },
    spec: {
      version: `v${version}`,
      homepage: HOMEPAGE,
      shortDescription: 'Manage a fleet of clusters with Skerry',
      description: `${ABOUT}. The plugin is the command line of Skerry, without a server.\n`,
      platforms,
    },
  })
}
