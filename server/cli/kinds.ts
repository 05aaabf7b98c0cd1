// The kinds that people name, in all the ways they do: `services`, `service`, `svc`, `svc/web`.
import { nearest } from '../../shared/runtime/edit-distance.ts'
import { UsageError } from './io.ts'

const ALIASES = {
  clusters: ['cluster', 'cl'],
  services: ['service', 'svc'],
  repositories: ['repository', 'repo', 'repos'],
  configs: ['config', 'cfg'],
  projects: ['project', 'proj'],
  'health-rules': ['health-rule', 'hr', 'healthrule', 'healthrules'],
  placements: ['placement', 'pl'],
  objects: ['object', 'obj'],
  confirmations: ['confirmation', 'conf'],
  events: ['event', 'ev'],
  'join-tokens': ['join-token', 'jt'],
  suspensions: ['suspension', 'susp'],
  tokens: ['token'],
  'notification-sinks': ['notification-sink', 'sink', 'sinks', 'notificationsink', 'notificationsinks'],
  'notification-routes': ['notification-route', 'nroute', 'notificationroute', 'notificationroutes'],
  notifications: ['notification', 'notif'],
  'saved-queries': ['saved-query', 'sq', 'savedquery', 'savedqueries'],
  roles: ['role'],
  'role-bindings': ['role-binding', 'rb', 'rolebinding', 'rolebindings'],
} as const
export type Kind = keyof typeof ALIASES

export const KINDS = Object.keys(ALIASES) as Kind[]
/** As `service/web` has it. */
export const singular = (kind: Kind): string => ALIASES[kind][0]
export const kindHelp = (kinds: readonly Kind[]): string => kinds.map((kind) => [kind, ...ALIASES[kind].slice(1)].join('|')).join(', ')

/** Every word for a kind. */
export const KIND_WORDS: readonly string[] = KINDS.flatMap((kind) => [kind, ...ALIASES[kind]])

export function kindOf(text: string): Kind | null {
  const word = text.toLowerCase()
  return KINDS.find((kind) => kind === word || ALIASES[kind].some((alias) => alias === word)) ?? null
}

/** `kind`, `kind name` or `kind/name`. */
export function parseTarget(
  kindText: string,
  nameText: string | undefined,
  allowed: readonly Kind[],
): { kind: Kind; name: string | undefined } {
  const slash = kindText.indexOf('/')
  const word = slash < 0 ? kindText : kindText.slice(0, slash)
  const kind = kindOf(word)
  if (kind === null) {
    const near = nearest(
      word,
      allowed.flatMap((kind) => [kind, ...ALIASES[kind]]),
    )
    throw new UsageError(`unknown kind "${word}"${near === null ? '' : `; did you mean "${near}"?`}\nKinds: ${kindHelp(allowed)}`)
  }
  if (!allowed.includes(kind)) throw new UsageError(`this command does not accept ${kind}\nKinds: ${kindHelp(allowed)}`)
  const name = slash < 0 ? nameText : kindText.slice(slash + 1)
  if (slash >= 0 && nameText !== undefined) throw new UsageError(`give the name once: "${kindText}" or "${word} ${nameText}"`)
  if (name === '') throw new UsageError(`a name is missing after "${word}/"`)
  return { kind, name }
}
