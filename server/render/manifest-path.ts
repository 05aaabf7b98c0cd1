// Which files of a folder are read as manifests.

const MANIFEST = /\.(ya?ml|json)(\.liquid)?$/i
/** Files that say that plain reading is not what is meant. */
const OTHER_RENDERERS: Record<string, string> = {
  'Chart.yaml': 'a Helm chart',
  'kustomization.yaml': 'a kustomization',
  'kustomization.yml': 'a kustomization',
  Kustomization: 'a kustomization',
}

/** RN2: `.yaml`, `.yml` and `.json`, with or without `.liquid`, but nothing whose name or folder begins with a dot. A path that ends with a slash is a folder: whether to look into it. */
export function isManifestPath(path: string): boolean {
  const segments = path.split('/')
  const folder = segments.at(-1) === ''
  if (segments.some((segment) => segment.startsWith('.'))) return false
  const name = segments.at(-1) ?? ''
  return folder || MANIFEST.test(name) || Object.hasOwn(OTHER_RENDERERS, name)
}

/** What a file announces that raw rendering cannot do; null: nothing. */
export function otherRenderer(path: string): string | null {
  const name = path.slice(path.lastIndexOf('/') + 1)
  return Object.hasOwn(OTHER_RENDERERS, name) ? (OTHER_RENDERERS[name] ?? null) : null
}
