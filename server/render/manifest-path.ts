// Which files of a folder are read as manifests.
import { KUSTOMIZATION_NAMES } from './kustomize/paths.ts'
import { renderedName } from './liquid/files.ts'

const MANIFEST = /\.(ya?ml|json)(\.liquid)?$/i
/** Files that say that plain reading is not what is meant. */
const OTHER_RENDERERS = new Map([
  ['Chart.yaml', 'a Helm chart'],
  ...KUSTOMIZATION_NAMES.map((name): [string, string] => [name, 'a kustomization']),
])

/** RN2: `.yaml`, `.yml` and `.json`, with or without `.liquid`, but nothing whose name or folder begins with a dot. A
 *  path that ends with a slash is a folder: whether to look into it. */
export function isManifestPath(path: string): boolean {
  const segments = path.split('/')
  const folder = segments.at(-1) === ''
  if (segments.some((segment) => segment.startsWith('.'))) return false
  const name = segments.at(-1) ?? ''
  return folder || MANIFEST.test(name) || OTHER_RENDERERS.has(renderedName(name))
}

/** The feature of a file that raw rendering does not support. Null if there is none. */
export function otherRenderer(path: string): string | null {
  return OTHER_RENDERERS.get(renderedName(path.slice(path.lastIndexOf('/') + 1))) ?? null
}
