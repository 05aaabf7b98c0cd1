// The stored spec of a Config: values of secrets are sealed there and nowhere in the clear. People read a mark, equal
// for equal values, and a mark written back keeps the present value.
import { canonicalJson, sha256Hex } from '../../shared/kube/canonical.ts'
import { type ConfigData, type ConfigSpec, configSpecSchema, REFRESH_MS_DEFAULT, type ValueSource } from '../../shared/model/render.ts'
import { durationMs } from '../../shared/runtime/durations.ts'
import { AppError, type Problem } from '../../shared/runtime/error.ts'
import { boundHosts, type HostBinding } from './config-hosts.ts'
import type { ConfigId, ConfigKeys, ValueKey } from './config-keys.ts'
import { fileWrapBytes } from './key-wrap.ts'
import { sealingKeyId } from './secret-box.ts'

export interface OpenedConfig {
  data: ConfigData
  secrets: Readonly<Record<string, string>>
}

/** The form in the store. */
interface KeptSpec extends HostBinding {
  data: ConfigData
  /** By name: `sealed:` the mark's digits `:` base64url. */
  secrets: Readonly<Record<string, string>>
  /** The data key, wrapped. Absent means that there is no secret, or a version before data keys sealed them. */
  key?: string
  /** Id of the rotation after which the data key was made. Absent means before the first one. */
  rotation?: string
  valueFrom?: readonly ValueSource[]
  refresh?: string
  /** Values of `valueFrom` that were read, by name. */
  fetched?: Readonly<Record<string, FetchedText>>
}

/** `of`: names the source, so that the value of another one is not taken for its value. */
interface FetchedText {
  sealed: string
  of: string
  version: string
  atMs: number
}

const MARK = /^hmac:[0-9a-f]{16}$/
/** Whether a written value keeps what is there; any other text is a new value. */
export const isSecretMark = (value: string): boolean => MARK.test(value)
const SEALED = /^sealed:([0-9a-f]{16}):([A-Za-z0-9_-]+)$/

/** `held`: the spec that is kept now. A secret that stays the same stays the same sealed text, so that nothing is
 *  written when nothing changed. */
export async function sealConfig(
  keys: ConfigKeys,
  id: ConfigId,
  { data, secrets, hosts, valueFrom = [], refresh }: ConfigSpec,
  held: string | null,
): Promise<{ kind: 'sealed'; spec: string } | { kind: 'refused'; problems: Problem[] }> {
  const kept = held === null ? NOTHING_KEPT : keptSpec(held)
  const before = kept.secrets
  const problems: Problem[] = []
  for (const [secret, value] of Object.entries(secrets)) {
    const there = before[secret]
    if (MARK.test(value) && (there === undefined || markOf(there) !== value))
      problems.push({ path: `spec.secrets.${secret}`, message: there === undefined ? NOTHING_TO_KEEP : ANOTHER_VALUE })
  }
  for (const [index, { name }] of valueFrom.entries())
    if (Object.hasOwn(secrets, name) || Object.hasOwn(data, name))
      problems.push({ path: `spec.valueFrom[${index}].name`, message: `${name} is in data or secrets as well: remove one of them` })
  const isKept = Object.values(secrets).some((value) => MARK.test(value))
  const added = hosts?.filter((host) => boundHosts(kept)?.includes(host) === false) ?? []
  if (isKept && added.length > 0) problems.push({ path: 'spec.hosts', message: `${added.join(', ')}: ${HOST_WITHOUT_VALUES}` })
  if (problems.length > 0) return { kind: 'refused', problems }
  const fetched = fetchedOf(kept, valueFrom)
  const sealed = await sealSecrets(keys, id, secrets, { ...kept, fetched })
  if (sealed.kind === 'refused') return sealed
  const sources = { ...(valueFrom.length === 0 ? {} : { valueFrom }), ...(refresh === undefined ? {} : { refresh }) }
  return { kind: 'sealed', spec: canonicalJson({ data, ...sealed.kept, ...sources, ...bindingAfter(kept, hosts) }) }
}

type Kept = Pick<KeptSpec, 'secrets' | 'key' | 'rotation' | 'fetched'>

/** Values that were read for sources which are still named, and are the same. */
const fetchedOf = ({ fetched = {} }: Pick<KeptSpec, 'fetched'>, sources: readonly ValueSource[]): Record<string, FetchedText> =>
  Object.fromEntries(
    sources.flatMap((source) => {
      const held = fetched[source.name]
      return held === undefined || held.of !== sourceDigest(source) ? [] : [[source.name, held]]
    }),
  )

/** Holds no secret: the source is readable in the spec. */
export const sourceDigest = (source: ValueSource): string => sha256Hex(canonicalJson(source)).slice(0, 16)

/** The name under which the value of a source is sealed: no secret has it. */
const fetchedPlace = (name: string): string => `valueFrom/${name}`

/** Secrets that stay the same keep the data key; one of a version before data keys is replaced with all of them. */
async function sealSecrets(
  keys: ConfigKeys,
  id: ConfigId,
  secrets: Readonly<Record<string, string>>,
  { secrets: before, key: wrapped, rotation, fetched = {} }: Kept,
): Promise<{ kind: 'sealed'; kept: Kept } | { kind: 'refused'; problems: Problem[] }> {
  const names = Object.keys(secrets)
  const ofKey = { ...(wrapped === undefined ? {} : { key: wrapped }), ...(rotation === undefined ? {} : { rotation }) }
  const asBefore = (): Kept => {
    const same = Object.fromEntries(names.map((name) => [name, before[name] ?? '']))
    if (names.length === 0 && Object.keys(fetched).length === 0) return { secrets: {} }
    return { secrets: same, ...ofKey, ...withFetched(fetched) }
  }
  if (names.every((name) => MARK.test(secrets[name] ?? ''))) return { kind: 'sealed', kept: asBefore() }
  const heldKey = wrapped === undefined && Object.keys(before).length === 0 ? null : await keys.open(id, wrapped ?? null)
  const values = new Map<string, string>()
  const problems: Problem[] = []
  let isChanged = false
  for (const [name, value] of Object.entries(secrets)) {
    const there = before[name]
    const opened = there === undefined ? null : (heldKey?.open(name, sealedBytes(there)) ?? null)
    if (MARK.test(value) && opened === null) problems.push({ path: `spec.secrets.${name}`, message: NOT_OPENED })
    values.set(name, MARK.test(value) ? (opened ?? '') : value)
    isChanged ||= opened !== values.get(name)
  }
  if (problems.length > 0) return { kind: 'refused', problems }
  if (!isChanged) return { kind: 'sealed', kept: asBefore() }
  const isReused = heldKey !== null && heldKey.wrapped !== null
  const key = isReused ? heldKey : await keys.make(id)
  const sealed: Record<string, string> = {}
  for (const [name, value] of values) {
    const there = before[name]
    const stays = isReused && there !== undefined && key.open(name, sealedBytes(there)) === value
    sealed[name] = stays ? there : sealedText(key, name, value)
  }
  // Under a data key that does not open here any more they are read anew.
  return { kind: 'sealed', kept: { secrets: sealed, ...(isReused ? { ...ofKey, ...withFetched(fetched) } : madeNow(keys, key)) } }
}

const withFetched = (fetched: Readonly<Record<string, FetchedText>>): Pick<KeptSpec, 'fetched'> =>
  Object.keys(fetched).length === 0 ? {} : { fetched }

export interface FetchedValue {
  value: string
  /** As its source names it; '' where it names none. */
  version: string
}

/**
 * The spec with values that were read of its sources. `isChanged`: some value differs. Null means all of them, with
 * their versions, are there.
 */
export async function keepFetched(
  keys: ConfigKeys,
  id: ConfigId,
  held: string,
  read: ReadonlyMap<string, FetchedValue>,
  nowMs: number,
): Promise<{ spec: string; isChanged: boolean } | null> {
  const isEarlier = isOfAnotherMaster(keys, held)
  const kept = keptSpec(isEarlier ? ((await resealConfig(keys, id, held)).spec ?? held) : held)
  const heldKey = kept.key === undefined ? null : await keys.open(id, kept.key)
  if (heldKey === null && sealedTexts(kept).length > 0) throw unopened(id, sealedTexts(kept)[0]?.name ?? '')
  const key = heldKey ?? (await keys.make(id))
  const fetched = fetchedOf(kept, kept.valueFrom ?? [])
  let [isChanged, isNewer] = [false, false]
  for (const source of kept.valueFrom ?? []) {
    const found = read.get(source.name)
    if (found === undefined) continue
    const there = fetched[source.name]
    const place = fetchedPlace(source.name)
    const isSame = there !== undefined && key.open(place, sealedBytes(there.sealed)) === found.value
    if (isSame && there.version === found.version) continue
    isNewer = true
    isChanged ||= !isSame
    const sealed = isSame ? there.sealed : sealedText(key, place, found.value)
    fetched[source.name] = { sealed, of: sourceDigest(source), version: found.version, atMs: isSame ? there.atMs : nowMs }
  }
  if (!isNewer) return null
  const ofKey = heldKey === null ? madeNow(keys, key) : {}
  return { spec: canonicalJson({ ...kept, ...ofKey, fetched }), isChanged }
}

/** For people: the values of sources that were read, by name. */
export function shownFetched(spec: string): Record<string, { mark: string; version: string; atMs: number }> {
  const kept = keptSpec(spec)
  const fetched = Object.entries(fetchedOf(kept, kept.valueFrom ?? []))
  return Object.fromEntries(fetched.map(([name, { sealed, version, atMs }]) => [name, { mark: markOf(sealed), version, atMs }]))
}

/** The sources of a stored spec, and how often they are read. */
export function sourcesIn(spec: string): { sources: readonly ValueSource[]; refreshMs: number } {
  const { valueFrom = [], refresh } = keptSpec(spec)
  return { sources: valueFrom, refreshMs: refresh === undefined ? REFRESH_MS_DEFAULT : durationMs(refresh) }
}

const madeNow = ({ rotation }: ConfigKeys, { wrapped }: ValueKey) => ({
  ...(wrapped === null ? {} : { key: wrapped }),
  ...(rotation === '' ? {} : { rotation }),
})

/** The binding after a write: `hosts` left out, or equal to what is shown, changes nothing. */
function bindingAfter(held: HostBinding, hosts: readonly string[] | undefined): HostBinding {
  const sorted = hosts === undefined ? undefined : [...new Set(hosts)].sort()
  return sorted === undefined || canonicalJson(sorted) === canonicalJson(boundHosts(held)) ? bindingIn(held) : { hosts: sorted }
}

const NOTHING_TO_KEEP = 'hmac:… keeps an existing value, and this secret has none: write the value'
const HOST_WITHOUT_VALUES = 'the secrets are bound to other hosts; to add a host, write the values of the secrets instead of hmac:…'
const ANOTHER_VALUE = 'hmac:… is the mark of another value: read the Config again, or write the value'
const NOT_OPENED = 'the present value cannot be opened with the keys of this server: write the value'

/** For people: marks in the place of secrets. */
export function shownConfig(spec: string): ConfigSpec {
  const kept = keptSpec(spec)
  const hosts = boundHosts(kept)
  const secrets = Object.fromEntries(Object.entries(kept.secrets).map(([name, sealed]) => [name, markOf(sealed)]))
  return {
    data: kept.data,
    secrets,
    ...(hosts === null ? {} : { hosts }),
    ...(kept.valueFrom === undefined ? {} : { valueFrom: [...kept.valueFrom] }),
    ...(kept.refresh === undefined ? {} : { refresh: kept.refresh }),
  }
}

/** The same values, bound to these hosts by their first use. */
export const bindConfig = (spec: string, firstUse: Readonly<Record<string, string>>): string =>
  canonicalJson({ ...JSON.parse(spec), firstUse })

export const bindingOf = (spec: string): HostBinding => bindingIn(keptSpec(spec))

const bindingIn = ({ hosts, firstUse }: HostBinding): HostBinding => ({
  ...(hosts === undefined ? {} : { hosts }),
  ...(firstUse === undefined ? {} : { firstUse }),
})

/** Throws `credential_missing` for secrets that were sealed under keys that are not here, `values_missing` for a source
 *  that was never read, and `key_service_unavailable`. */
export async function openConfig(keys: ConfigKeys, id: ConfigId, spec: string): Promise<OpenedConfig> {
  const kept = keptSpec(spec)
  const texts = sealedTexts(kept)
  const key = texts.length === 0 ? null : await keys.open(id, kept.key ?? null)
  const secrets: Record<string, string> = {}
  for (const { name, place, sealed } of texts) {
    const value = key?.open(place, sealedBytes(sealed)) ?? null
    if (value === null) throw unopened(id, name)
    secrets[name] = value
  }
  const missing = (kept.valueFrom ?? []).filter(({ name }) => !Object.hasOwn(secrets, name)).map(({ name }) => name)
  if (missing.length > 0)
    throw new AppError('values_missing', {
      detail: `${missing.join(', ')} of Config ${id.name} in project ${id.project} has not been read from its source yet`,
      remedy: `\`skerry describe config ${id.name} -p ${id.project}\` shows the state of each source.`,
    })
  return { data: kept.data, secrets }
}

/** All that is sealed under the data key. */
function sealedTexts(kept: KeptSpec): Array<{ name: string; place: string; sealed: string }> {
  const fetched = Object.entries(fetchedOf(kept, kept.valueFrom ?? []))
  return [
    ...Object.entries(kept.secrets).map(([name, sealed]) => ({ name, place: name, sealed })),
    ...fetched.map(([name, { sealed }]) => ({ name, place: fetchedPlace(name), sealed })),
  ]
}

const unopened = ({ project, name }: ConfigId, secret: string): AppError =>
  new AppError('credential_missing', {
    detail: `secret ${secret} of Config ${name} in project ${project} was sealed under a key that this server does not have`,
    remedy: 'Write the value again with `skerry apply -f`, or restore keys/secrets.json of the server on which it was written.',
  })

/** Whether a rotation has still to seal it anew. */
export const isDue = (keys: ConfigKeys, spec: string): boolean => {
  const kept = keptSpec(spec)
  return (sealedTexts(kept).length > 0 && (kept.rotation ?? '') !== keys.rotation) || isOfAnotherMaster(keys, spec)
}

/** Whether it has secrets without a data key, as a version before data keys sealed them, or a data key of another
 *  master key. */
export function isOfAnotherMaster(keys: ConfigKeys, spec: string): boolean {
  const kept = keptSpec(spec)
  return sealedTexts(kept).length > 0 && (kept.key === undefined || !keys.isOfMaster(kept.key))
}

/**
 * The spec with its secrets sealed anew under another data key. `unopened`: so many of them do not open and stay as
 * they are; `spec` null: none opens.
 */
export async function resealConfig(
  keys: ConfigKeys,
  id: ConfigId,
  spec: string,
): Promise<{ spec: string | null; secrets: number; unopened: number }> {
  const kept = keptSpec(spec)
  const opened = await openedTexts(keys, id, kept)
  const unopened = sealedTexts(kept).length - opened.size
  if (opened.size === 0) return { spec: null, secrets: 0, unopened }
  const made = await keys.make(id)
  const anew = (place: string, sealed: string): string => {
    const value = opened.get(place)
    return value === undefined ? sealed : sealedText(made, place, value)
  }
  const secrets = Object.fromEntries(Object.entries(kept.secrets).map(([name, sealed]) => [name, anew(name, sealed)]))
  const fetched = Object.fromEntries(
    Object.entries(kept.fetched ?? {}).map(([name, one]) => [name, { ...one, sealed: anew(fetchedPlace(name), one.sealed) }]),
  )
  const { key: _, rotation: __, fetched: ___, ...rest } = kept
  return {
    spec: canonicalJson({ ...rest, secrets, ...withFetched(fetched), ...madeNow(keys, made) }),
    secrets: opened.size,
    unopened,
  }
}

/** Whether a secret of it opens. */
export const opensAny = async (keys: ConfigKeys, id: ConfigId, spec: string): Promise<boolean> =>
  (await openedTexts(keys, id, keptSpec(spec))).size > 0

/** Those that open, by place. */
async function openedTexts(keys: ConfigKeys, id: ConfigId, kept: KeptSpec): Promise<Map<string, string>> {
  const key = await keys.open(id, kept.key ?? null)
  return new Map(
    sealedTexts(kept).flatMap(({ place, sealed }): Array<[string, string]> => {
      const value = key?.open(place, sealedBytes(sealed)) ?? null
      return value === null ? [] : [[place, value]]
    }),
  )
}

/** For each secret of a stored spec the id of the key of `keys/secrets.json` that is needed to open it. */
export function fileKeysOf(spec: string): string[] {
  const kept = keptSpec(spec)
  const texts = sealedTexts(kept)
  if (texts.length === 0) return []
  if (kept.key === undefined) return texts.map(({ sealed }) => sealingKeyId(sealedBytes(sealed)))
  const wrapped = fileWrapBytes(kept.key)
  return wrapped === null ? [] : texts.map(() => sealingKeyId(wrapped))
}

const NOTHING_KEPT: KeptSpec = { data: {}, secrets: {} }
function keptSpec(spec: string): KeptSpec {
  const read: KeptSpec = JSON.parse(spec)
  return { ...read, data: configSpecSchema.parse({ data: read.data }).data }
}
const sealedText = (key: ValueKey, secret: string, value: string): string =>
  `sealed:${key.markOf(secret, value)}:${Buffer.from(key.seal(secret, value)).toString('base64url')}`
const sealedBytes = (sealed: string): Buffer => Buffer.from(SEALED.exec(sealed)?.[2] ?? '', 'base64url')
const markOf = (sealed: string): string => `hmac:${SEALED.exec(sealed)?.[1] ?? ''}`
