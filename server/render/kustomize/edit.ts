// The additions of a service to its kustomization, written into it as `kustomize edit` would. They come where the
// author would have put them, before patches and other transformers that build on them.
import { parseYamlDocuments, toYaml } from '../../../shared/adapters/yaml.ts'
import type { K8sObject } from '../../../shared/kube/object.ts'
import { treePath } from '../tree-path.ts'

export interface KustomizeAdditions {
  namePrefix?: string | undefined
  nameSuffix?: string | undefined
  images?: readonly string[] | undefined
  components?: readonly string[] | undefined
  /** Each object gets an annotation with the file that it comes from. */
  origins?: boolean | undefined
}

export interface ImageChange {
  name: string
  newName?: string
  newTag?: string
  digest?: string
}

export const hasAdditions = ({ namePrefix, nameSuffix, images, components, origins }: KustomizeAdditions): boolean =>
  namePrefix !== undefined || nameSuffix !== undefined || (images ?? []).length > 0 || (components ?? []).length > 0 || origins === true

/** Null if the text is not a kustomization: kustomize's own message says it better. */
export function editKustomization(text: string, additions: KustomizeAdditions): string | null {
  const { documents, problems } = parseYamlDocuments(text, { file: '' })
  const value = documents.length === 0 ? {} : documents[0]?.value
  if (problems.length > 0 || documents.length > 1 || typeof value !== 'object' || value === null || Array.isArray(value)) return null
  const edited: Record<string, unknown> = { ...value }
  if (additions.namePrefix !== undefined) edited['namePrefix'] = additions.namePrefix
  if (additions.nameSuffix !== undefined) edited['nameSuffix'] = additions.nameSuffix
  const components = additions.components ?? []
  if (components.length > 0) edited['components'] = [...new Set([...listOf(edited['components']), ...components])]
  const images = additions.images ?? []
  if (images.length > 0) edited['images'] = withImages(listOf(edited['images']), images.map(parseImage))
  if (additions.origins === true) edited['buildMetadata'] = [...new Set([...listOf(edited['buildMetadata']), 'originAnnotations'])]
  return toYaml(edited)
}

const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : [])

/** Those of the kustomization that a change names are replaced whole; sorted by name, as kustomize does it. */
function withImages(images: readonly unknown[], changes: readonly ImageChange[]): unknown[] {
  const byName = new Map<string, unknown>()
  for (const image of images) byName.set(nameOf(image), image)
  for (const change of changes) byName.set(change.name, change)
  return [...byName].sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)).map(([, image]) => image)
}

const nameOf = (image: unknown): string =>
  typeof image === 'object' && image !== null && 'name' in image && typeof image.name === 'string' ? image.name : ''

/** `name=newName:tag`, `name=newName@sha256:…`, `name:tag`, `name@sha256:…`. */
export function parseImage(text: string): ImageChange {
  const equals = text.indexOf('=')
  const name = equals < 0 ? null : text.slice(0, equals)
  const given = text.slice(equals + 1)
  const at = given.indexOf('@')
  const digest = at < 0 ? '' : given.slice(at + 1)
  const tagged = at < 0 ? given : given.slice(0, at)
  // A colon before the last slash is a port.
  const colon = tagged.indexOf(':', tagged.lastIndexOf('/') + 1)
  const newName = colon < 0 ? tagged : tagged.slice(0, colon)
  const newTag = colon < 0 ? '' : tagged.slice(colon + 1)
  return {
    name: name ?? newName,
    ...(name === null || newName === '' || newName === name ? {} : { newName }),
    ...(newTag === '' ? {} : { newTag }),
    ...(digest === '' ? {} : { digest }),
  }
}

const ORIGIN = 'config.kubernetes.io/origin'

/**
 * The file that the annotation of an object names, from the tree's root: its own, or the kustomization that generates
 * it. Null: the object names none of this tree.
 */
export function originIn({ metadata }: K8sObject, root: string): string | null {
  const text = metadata.annotations?.[ORIGIN]
  if (text === undefined) return null
  const { path, configuredIn, repo } = Object(parseYamlDocuments(text, { file: '' }).documents[0]?.value) as Record<string, unknown>
  const written = path ?? configuredIn
  return typeof written !== 'string' || repo !== undefined ? null : treePath(root, written)
}
