// The stored spec of a Config: values of secrets are sealed there and nowhere in the clear. People read a mark, equal
// for equal values, and a mark written back keeps the present value.
import { canonicalJson } from '../../shared/kube/canonical.ts'
import { type ConfigData, type ConfigSpec, configSpecSchema } from '../../shared/model/render.ts'
import { AppError, type Problem } from '../../shared/protocol/error.ts'
import { boundHosts, type HostBinding } from './config-hosts.ts'
import { type SecretBox, sealingKeyId } from './secret-box.ts'

export interface ConfigId {
  project: string
  name: string
}

export interface OpenedConfig {
  data: ConfigData
  secrets: Readonly<Record<string, string>>
}

const MARK = /^hmac:[0-9a-f]{16}$/
/** Whether a written value keeps what is there; any other text is a new value. */
export const isSecretMark = (value: string): boolean => MARK.test(value)
/** `sealed:` the mark's digits `:` base64url. */
const SEALED = /^sealed:([0-9a-f]{16}):([A-Za-z0-9_-]+)$/

/** Equal for equal values of the same secret of the same Config: a value in another one proves nothing about it. */
const macOf = (box: SecretBox, { project, name }: ConfigId, secret: string, value: string): string =>
  box.macOf(['config', project, name, secret, value].join('\0'))

/** `held`: the spec that is kept now. A secret that stays the same stays the same sealed text, so that nothing is written when nothing changed. */
export function sealConfig(
  box: SecretBox,
  id: ConfigId,
  { data, secrets, hosts }: ConfigSpec,
  held: string | null,
): { kind: 'sealed'; spec: string } | { kind: 'refused'; problems: Problem[] } {
  const before = held === null ? {} : sealedSecrets(held)
  const problems: Problem[] = []
  const sealed: Record<string, string> = {}
  for (const [secret, value] of Object.entries(secrets)) {
    const kept = before[secret]
    if (MARK.test(value)) {
      if (kept !== undefined && markOf(kept) === value) sealed[secret] = kept
      else problems.push({ path: `spec.secrets.${secret}`, message: kept === undefined ? NOTHING_TO_KEEP : ANOTHER_VALUE })
    } else if (kept !== undefined && unseal(box, id, secret, kept) === value) sealed[secret] = kept
    else sealed[secret] = sealedText(box, id, secret, value)
  }
  const binding = held === null ? {} : bindingOf(held)
  const isKept = Object.values(secrets).some((value) => MARK.test(value))
  const added = hosts?.filter((host) => boundHosts(binding)?.includes(host) === false) ?? []
  if (isKept && added.length > 0) problems.push({ path: 'spec.hosts', message: `${added.join(', ')}: ${HOST_WITHOUT_VALUES}` })
  if (problems.length > 0) return { kind: 'refused', problems }
  return { kind: 'sealed', spec: canonicalJson({ data, secrets: sealed, ...bindingAfter(binding, hosts) }) }
}

/** The binding after a write: `hosts` left out, or equal to what is shown, changes nothing. */
function bindingAfter(held: HostBinding, hosts: readonly string[] | undefined): HostBinding {
  const sorted = hosts === undefined ? undefined : [...new Set(hosts)].sort()
  return sorted === undefined || canonicalJson(sorted) === canonicalJson(boundHosts(held)) ? held : { hosts: sorted }
}

const NOTHING_TO_KEEP = 'hmac:… keeps an existing value, and this secret has none: write the value'
const HOST_WITHOUT_VALUES = 'the secrets are bound to other hosts; to add a host, write the values of the secrets instead of hmac:…'
const ANOTHER_VALUE = 'hmac:… is the mark of another value: read the Config again, or write the value'

/** For people: marks in the place of secrets. */
export function shownConfig(spec: string): ConfigSpec {
  const { data } = keptSpec(spec)
  const hosts = boundHosts(bindingOf(spec))
  const secrets = Object.fromEntries(Object.entries(sealedSecrets(spec)).map(([name, sealed]) => [name, markOf(sealed)]))
  return { data, secrets, ...(hosts === null ? {} : { hosts }) }
}

/** The same values, bound to these hosts by their first use. */
export const bindConfig = (spec: string, firstUse: Readonly<Record<string, string>>): string =>
  canonicalJson({ ...JSON.parse(spec), firstUse })

export function bindingOf(spec: string): HostBinding {
  const { hosts, firstUse }: HostBinding = JSON.parse(spec)
  return { ...(hosts === undefined ? {} : { hosts }), ...(firstUse === undefined ? {} : { firstUse }) }
}

/** Throws `credential_missing` for secrets that were sealed under keys that are not here. */
export function openConfig(box: SecretBox, id: ConfigId, spec: string): OpenedConfig {
  const { project, name } = id
  const secrets: Record<string, string> = {}
  for (const [secret, sealed] of Object.entries(sealedSecrets(spec))) {
    const value = unseal(box, id, secret, sealed)
    if (value === null)
      throw new AppError('credential_missing', {
        detail: `secret ${secret} of Config ${name} in project ${project} was sealed under a key that this server does not have`,
        remedy: 'Write the value again with `skerry apply -f`, or restore keys/secrets.json of the server on which it was written.',
      })
    secrets[secret] = value
  }
  return { data: keptSpec(spec).data, secrets }
}

/**
 * The spec with each secret of an earlier key sealed again under the present one; `unopened`: those whose key is
 * missing stay as they are. Null: none of them.
 */
export function resealConfig(box: SecretBox, id: ConfigId, spec: string): { spec: string; secrets: number; unopened: number } | null {
  const sealed = { ...sealedSecrets(spec) }
  let [secrets, unopened] = [0, 0]
  for (const [secret, text] of Object.entries(sealed)) {
    if (box.isCurrent(sealedBytes(text))) continue
    const value = unseal(box, id, secret, text)
    if (value === null) unopened++
    else {
      sealed[secret] = sealedText(box, id, secret, value)
      secrets++
    }
  }
  return secrets + unopened === 0 ? null : { spec: canonicalJson({ ...JSON.parse(spec), secrets: sealed }), secrets, unopened }
}

/** CG7: of the key under which each secret of a stored spec is sealed. */
export const sealingKeysOf = (spec: string): string[] => Object.values(sealedSecrets(spec)).map((text) => sealingKeyId(sealedBytes(text)))

const keptSpec = (spec: string): ConfigSpec => configSpecSchema.parse({ data: JSON.parse(spec).data })
const sealedSecrets = (spec: string): Readonly<Record<string, string>> => {
  const { secrets }: { secrets: Record<string, string> } = JSON.parse(spec)
  return secrets
}
const sealedText = (box: SecretBox, id: ConfigId, secret: string, value: string): string =>
  `sealed:${macOf(box, id, secret, value)}:${Buffer.from(box.seal(Buffer.from(value), placeOf(id, secret))).toString('base64url')}`
const sealedBytes = (sealed: string): Buffer => Buffer.from(SEALED.exec(sealed)?.[2] ?? '', 'base64url')
const markOf = (sealed: string): string => `hmac:${SEALED.exec(sealed)?.[1] ?? ''}`

/** CG10 */
const placeOf = ({ project, name }: ConfigId, secret: string): string => `config/${project}/${name}/${secret}`

function unseal(box: SecretBox, id: ConfigId, secret: string, sealed: string): string | null {
  const bytes = box.open(sealedBytes(sealed), placeOf(id, secret))
  return bytes === null ? null : new TextDecoder().decode(bytes)
}
