// Annotations in a manifest that name fields which are left to others: ours and Plural's. Argo CD's `compare-options`
// are known and change nothing here: what they ask for (no drift by what others add, none by defaults and mutating
// webhooks) is how ownership is compared anyway.

export const IGNORE_ANNOTATION = 'skerry.dev/ignore'
const PLURAL_IGNORE_FIELDS = 'deployments.plural.sh/ignore-fields'

/** JSON pointers, commas between them. `spec.replicas`, as Plural's users write it too, is `/spec/replicas`. What is
 *  neither points nowhere. */
export function ignoredPointers(annotations: Record<string, string> | undefined): string[] {
  if (annotations === undefined) return []
  const pointers: string[] = []
  for (const key of [IGNORE_ANNOTATION, PLURAL_IGNORE_FIELDS]) {
    for (const part of annotations[key]?.split(',') ?? []) {
      const text = part.trim()
      if (text.startsWith('/')) pointers.push(text)
      else if (text !== '')
        pointers.push(
          `/${text
            .replace(/^\.|^\$\./, '')
            .split('.')
            .map(escapeSegment)
            .join('/')}`,
        )
    }
  }
  return pointers
}

const escapeSegment = (segment: string): string => segment.replaceAll('~', '~0').replaceAll('/', '~1')

/** RFC 6901. */
export const pointerSegments = (pointer: string): string[] =>
  pointer
    .split('/')
    .slice(1)
    .map((segment) => segment.replaceAll('~1', '/').replaceAll('~0', '~'))
