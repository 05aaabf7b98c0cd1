// Packages for Debian and for Red Hat, made by nfpm: one binary, its licences, and scripts that leave a running service
// as it should be.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Architecture } from '../images/dockerfile.ts'

export interface PackageFacts {
  name: 'skerry' | 'skerry-agent'
  about: string
  version: string
  architecture: Architecture
  binary: string
  /** Files: where in the package → path here. */
  files: Readonly<Record<string, string>>
  seconds: number
  nfpm: string
}

/** The symbols of the programs and of cr-sqlite need it; tests/e2e/release.test.ts reads them. */
export const GLIBC_LEAST = '2.17'

/** `skerry-agent install` writes the unit; it stays while the package is replaced. */
const SCRIPTS: Readonly<Record<PackageFacts['name'], Record<string, string>>> = {
  skerry: {},
  'skerry-agent': {
    postinstall: `#!/bin/sh
set -e
if [ -d /run/systemd/system ] && [ -e /etc/systemd/system/skerry-agent.service ]; then
  systemctl try-restart skerry-agent.service || true
fi
`,
    // dpkg says "remove", rpm the number of packages that are left.
    preremove: `#!/bin/sh
set -e
case "$1" in
  remove | 0)
    if [ -d /run/systemd/system ] && [ -e /etc/systemd/system/skerry-agent.service ]; then
      systemctl disable --now skerry-agent.service skerry-agent-kubeconfig.path || true
      echo 'The agent is stopped; objects in the cluster stay. Its unit, options and identity stay, too: see skerry-agent uninstall.'
    fi
    ;;
esac
`,
  },
}

/** Answers the names of the files in `folder`. */
export function writePackages(facts: PackageFacts, folder: string): string[] {
  const { name, about, version, architecture, binary, files, seconds, nfpm } = facts
  const work = mkdtempSync(join(tmpdir(), 'skerry-package-'))
  try {
    const scripts = Object.entries(SCRIPTS[name]).map(([when, text]) => {
      const path = join(work, when)
      writeFileSync(path, text, { mode: 0o755 })
      return [when, path]
    })
    const config = {
      ...{ name, arch: architecture, platform: 'linux', version, section: 'admin', priority: 'optional', license: 'Apache-2.0' },
      ...{
        maintainer: 'The Skerry authors <maintainers@skerry.dev>',
        vendor: 'Skerry',
        homepage: 'https://skerry.dev',
        description: about,
      },
      mtime: new Date(seconds * 1000).toISOString(),
      contents: [
        { src: binary, dst: `/usr/bin/${name}`, file_info: { mode: 0o755, mtime: new Date(seconds * 1000).toISOString() } },
        ...Object.entries(files).map(([dst, src]) => ({
          src,
          dst,
          file_info: { mode: 0o644, mtime: new Date(seconds * 1000).toISOString() },
        })),
      ],
      scripts: Object.fromEntries(scripts),
      overrides: { deb: { depends: [`libc6 (>= ${GLIBC_LEAST})`] }, rpm: { depends: [`glibc >= ${GLIBC_LEAST}`] } },
      deb: { compression: 'gzip' },
      rpm: { compression: 'gzip', buildhost: 'localhost' },
    }
    const path = join(work, 'nfpm.json') // JSON is YAML
    writeFileSync(path, JSON.stringify(config))
    return (['deb', 'rpm'] as const).map((packager) => {
      const file = `${name}_${version}_${architecture}.${packager}`
      const made = Bun.spawnSync([nfpm, 'package', '--config', path, '--packager', packager, '--target', join(folder, file)], {
        env: { ...process.env, SOURCE_DATE_EPOCH: String(seconds) },
      })
      if (!made.success) throw new Error(`nfpm: ${file}: ${made.stdout}${made.stderr}`)
      return file
    })
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}
