// Writes the images of server and agent as OCI image layouts, from the files that the Dockerfiles copy. No Docker is
// needed. See scripts/image.
import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { packageVersion } from './binary-sandbox.ts'
import { type Architecture, filesOf, finalStage, type ImageFile, withDebianRoot } from './images/dockerfile.ts'
import { layerOf } from './images/layer.ts'
import { type WrittenImage, writeLayout } from './images/oci.ts'

const ROOT = join(import.meta.dir, '..')
const IMAGES = { server: 'Dockerfile.server', agent: 'Dockerfile.agent' } as const
export type ImageName = keyof typeof IMAGES

const git = (...args: string[]): string =>
  Bun.spawnSync(['git', ...args], { cwd: ROOT })
    .stdout.toString()
    .trim()

/** SOURCE_DATE_EPOCH, or the time of the commit. */
function buildSeconds(): number {
  const given = process.env['SOURCE_DATE_EPOCH'] ?? git('log', '-1', '--format=%ct')
  return /^\d+$/.test(given) ? Number(given) : 0
}

/** Rarely changed files come first, so that an upgrade loads one layer: Debian, render programs, the binary. */
const LAYERS: ReadonlyArray<(path: string) => boolean> = [
  (path) => !/^\/(usr\/bin\/(skerry|skerry-agent|helm|helm3|kustomize)|data|tmp)$/.test(path),
  (path) => /^\/usr\/bin\/(helm|helm3|kustomize)$/.test(path),
  (path) => /^\/(usr\/bin\/(skerry|skerry-agent)|data|tmp)$/.test(path),
]

/** Files of the image by path, as the Dockerfile copies them. */
function withFiles<T>(name: ImageName, architecture: Architecture, use: (files: ImageFile[]) => T): T {
  return withDebianRoot(architecture, (debianRoot) => {
    const files = finalStage(IMAGES[name]).copies.flatMap((copy) => filesOf(copy, debianRoot, architecture))
    const makes = architecture === 'arm64' ? 'scripts/build --arm64' : 'scripts/build and scripts/setup --render'
    for (const { content } of files)
      if (content.kind === 'file' && !existsSync(content.path)) throw new Error(`${content.path} is missing; run ${makes}`)
    return use(files)
  })
}

/** The commit and the time that files of a build name. */
export interface BuildOrigin {
  commit: string
  seconds: number
}
export const buildOrigin = (): BuildOrigin => ({
  commit: process.env['SKERRY_COMMIT'] ?? git('rev-parse', 'HEAD'),
  seconds: buildSeconds(),
})

export function writeImage(
  name: ImageName,
  folder: string,
  architectures: readonly Architecture[],
  { commit, seconds }: BuildOrigin,
): WrittenImage {
  const stage = finalStage(IMAGES[name])
  const version = packageVersion()
  const created = new Date(seconds * 1000).toISOString()
  const labels = {
    'org.opencontainers.image.title': name === 'server' ? 'skerry-server' : 'skerry-agent',
    'org.opencontainers.image.description': name === 'server' ? 'The Skerry server' : 'The Skerry agent of a cluster',
    'org.opencontainers.image.version': version,
    'org.opencontainers.image.revision': commit,
    'org.opencontainers.image.created': created,
    'org.opencontainers.image.licenses': 'Apache-2.0',
    'org.opencontainers.image.base.name': 'scratch',
  }
  const images = architectures.map((architecture) =>
    withFiles(name, architecture, (files) => {
      const parts = LAYERS.map((isIn) => files.filter(({ path }) => isIn(path))).filter((part) => part.length > 0)
      return { architecture, layers: parts.map((part) => layerOf(part, seconds)) }
    }),
  )
  return writeLayout(folder, images, { stage, labels, created, ref: version })
}

if (import.meta.main) {
  const args = process.argv.slice(2)
  const asJson = args.includes('--json')
  const architectures: Architecture[] = args.includes('--arm64') ? ['amd64', 'arm64'] : ['amd64']
  const words = args.filter((arg) => !arg.startsWith('--'))
  const out = resolve(words[0] ?? 'dist/images')
  const origin = buildOrigin()
  const written = Object.fromEntries(
    (Object.keys(IMAGES) as ImageName[]).map((name) => [
      `skerry-${name}`,
      writeImage(name, join(out, `skerry-${name}`), architectures, origin),
    ]),
  )
  if (asJson) process.stdout.write(`${JSON.stringify(written, null, 2)}\n`)
  else
    for (const [name, { digest, platforms }] of Object.entries(written))
      for (const { architecture, bytes } of platforms)
        process.stdout.write(`image: ${join(out, name)} ${architecture} ${(bytes / 1e6).toFixed(1)} MB compressed, ${digest}\n`)
}
