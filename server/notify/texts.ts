// The title and the text of a message for people, pure.
import type { CommitDoc, EventsDoc, NotificationDoc } from '../fleet/notification-records.ts'

/** Clusters that a text names. */
const NAMES_SHOWN = 20
const TEXT_MAX = 1_500

export const titleOf = (doc: NotificationDoc): string => (doc.type === 'commit' ? commitTitle(doc) : eventsTitle(doc))

const commitTitle = ({ project, service, sha, description }: CommitDoc): string =>
  `${project}/${service}@${sha.slice(0, 7)}: ${description}`

function eventsTitle(doc: EventsDoc): string {
  const { reason, project, service, after, members, unnamed, ofClusters, digest, resolved, total } = doc
  const count = resolved ? total : members.length + unnamed
  const about = service === null ? (project ?? '') : `${project}/${service}`
  const begin = resolved ? 'Resolved: ' : ''
  if (digest !== undefined) return `${begin}${total} events in ${Object.keys(digest).length} groups`
  const [only] = members
  const where =
    !ofClusters || count === 0
      ? ''
      : count === 1 && only !== undefined
        ? ` in ${only}`
        : ` in ${count} ${count === 1 ? 'cluster' : 'clusters'}`
  const what = ofClusters && service !== null && count > 1 ? `${count} clusters ${reason}` : `${reason}${where}`
  const text = about === '' ? what : `${about}: ${what}`
  return `${begin}${text}${after === null ? '' : ` after ${after}`}`
}

export function textOf(doc: NotificationDoc): string {
  if (doc.type === 'commit') return doc.description
  const { message, members, unnamed, ofClusters, digest, resolved, total, after, commit } = doc
  if (digest !== undefined) {
    const groups = Object.entries(digest).sort(([, a], [, b]) => b - a)
    const shown = groups.slice(0, NAMES_SHOWN).map(([group, count]) => `${group}: ${count}`)
    return cut([...shown, ...(groups.length > NAMES_SHOWN ? [`and ${groups.length - NAMES_SHOWN} more`] : [])].join('\n'))
  }
  if (resolved) return `All ${total} are resolved.`
  // An event about a service alone names no other member.
  const known = members.filter((member) => member !== '')
  const names = known.slice(0, NAMES_SHOWN).join(', ')
  const more = known.length + unnamed - Math.min(known.length, NAMES_SHOWN)
  const list = known.length === 0 ? '' : `${ofClusters ? 'Clusters' : 'Objects'}: ${names}${more > 0 ? ` and ${more} more` : ''}`
  const written = commit === undefined || after === null ? '' : `${after}: ${commit}`
  return cut([message, list, written].filter((part) => part !== '').join('\n'))
}

const cut = (text: string): string => (text.length > TEXT_MAX ? `${text.slice(0, TEXT_MAX)}…` : text)
