// Opens the SOPS documents of rows with the age keys of this site. A data key is opened once and stays in memory; what
// cannot be opened is a state of its object, with the recipients that would work.
import { createHash } from 'node:crypto'
import { openAge } from '../../shared/adapters/age.ts'
import type { K8sObject } from '../../shared/kube/object.ts'
import type { ServiceId } from '../../shared/model/ids.ts'
import { withSopsValues } from '../../shared/sops/object.ts'
import { type OpenSops, openSops } from '../../shared/sops/open.ts'
import { hasSopsMember, parcelsOf, recipientsText, type SopsParcel, sopsMemberOf } from '../../shared/sops/parcel.ts'
import type { Decrypted, Decryption } from '../reconcile/snapshot/wanted.ts'
import { SiteKeys, type SiteKeysDeps, SOPS_KEYS_LABEL, SOPS_KEYS_NAMESPACE, SOPS_PROJECTS_ANNOTATION } from './site-keys.ts'

/** Data keys in memory: one for each SOPS file and project. */
const DATA_KEYS_MAX = 10_000

type Closed = Omit<Extract<Decrypted, { kind: 'closed' }>, 'kind'>
/** `wrong`: a key of a recipient that the file names does not open it. */
type DataKey = { kind: 'key'; key: Uint8Array } | { kind: 'wrong'; recipient: string }

export class SopsDecrypter implements Decryption {
  readonly #keys: SiteKeys
  /** By project and stanzas; cleared when the keys of the site change. */
  readonly #dataKeys = new Map<string, DataKey>()
  #version = ''

  constructor(keys: SiteKeys) {
    this.#keys = keys
  }

  version(): string {
    return this.#keys.version()
  }

  report(): ReturnType<SiteKeys['report']> {
    return this.#keys.report()
  }

  prepare({ project }: ServiceId, object: K8sObject): Promise<void> | null {
    const member = sopsMemberOf(object)
    if (member === null) return null
    this.#forgetFormer()
    const parcels = parcelsOf(member).filter((parcel) => !this.#dataKeys.has(nameOf(project, parcel)))
    return parcels.length === 0 ? null : this.#openAll(project, parcels)
  }

  open({ project }: ServiceId, object: K8sObject): Decrypted {
    const member = sopsMemberOf(object)
    if (member === null) return hasSopsMember(object) ? { kind: 'closed', ...UNKNOWN_FORM } : { kind: 'plain', object }
    let closed: Closed | null = null
    const opened = (parcel: SopsParcel): OpenSops | null => {
      const held = this.#dataKeys.get(nameOf(project, parcel))
      if (held?.kind !== 'key') {
        closed ??= this.#whyClosed(project, parcel, held)
        return null
      }
      const result = openSops(parcel, held.key)
      if (result.kind === 'open') return result.sops
      closed ??= result.kind === 'mac' ? WRONG_MAC : unreadable(result.why)
      return null
    }
    const plain = withSopsValues(object, member, opened)
    return plain === null ? { kind: 'closed', ...(closed ?? MISPLACED) } : { kind: 'plain', object: plain }
  }

  async #openAll(project: string, parcels: readonly SopsParcel[]): Promise<void> {
    await this.#keys.ready()
    this.#forgetFormer()
    for (const parcel of parcels) {
      const keys = this.#keys.of(project)
      let found: DataKey | null = null
      for (const [recipient, enc] of parcel.age) {
        for (const key of keys.filter((one) => one.recipient === recipient)) {
          const opened = await openAge(key, enc)
          if (opened !== null) found = { kind: 'key', key: opened }
          else found ??= { kind: 'wrong', recipient }
        }
        if (found?.kind === 'key') break
      }
      if (found !== null) this.#keep(nameOf(project, parcel), found)
    }
  }

  #keep(name: string, key: DataKey): void {
    for (const oldest of this.#dataKeys.keys()) {
      if (this.#dataKeys.size < DATA_KEYS_MAX) break
      this.#dataKeys.delete(oldest)
    }
    this.#dataKeys.set(name, key)
  }

  /** A key that was taken from the site opens nothing more. */
  #forgetFormer(): void {
    if (this.#version === this.#keys.version()) return
    this.#version = this.#keys.version()
    this.#dataKeys.clear()
  }

  #whyClosed(project: string, { age }: SopsParcel, held: DataKey | undefined): Closed {
    const recipients = age.map(([recipient]) => recipient)
    if (held?.kind === 'wrong')
      return {
        reason: 'SopsKeyWrong',
        message: `the age key ${recipientsText([held.recipient])} of this site does not open it, although its SOPS file names that key; restore the file, or encrypt it again with sops`,
      }
    const own = this.#keys.of(project)
    const former = recipients.filter((one) => this.#keys.isFormer(one))
    const others = this.#keys.all().filter((key) => recipients.includes(key.recipient))
    const site =
      own.length === 0 ? 'this site has no age key for it' : `keys of this site are ${recipientsText(own.map((one) => one.recipient))}`
    const problems = this.#keys.problems().map((problem) => `; ${problem}`)
    const told = `it is encrypted by SOPS to ${recipientsText(recipients)}, and ${site}`
    if (former.length > 0)
      return {
        reason: 'SopsKeyRotated',
        message: `${told}; ${recipientsText(former)} was removed from this site: run \`sops updatekeys\` with a recipient of this site, or restore that key${problems.join('')}`,
      }
    if (others.length > 0)
      return {
        reason: 'SopsKeyMissing',
        message: `${told}; the key in ${others[0]?.from} is for other projects than ${project} (${SOPS_PROJECTS_ANNOTATION}, or its folder)${problems.join('')}`,
      }
    return {
      reason: 'SopsKeyMissing',
      message: `${told}; add the key to a Secret with label ${SOPS_KEYS_LABEL} in namespace ${SOPS_KEYS_NAMESPACE}, or run \`sops updatekeys\` with a recipient of this site${problems.join('')}`,
    }
  }
}

export const createSopsDecrypter = ({ log, ...deps }: SiteKeysDeps): SopsDecrypter =>
  new SopsDecrypter(new SiteKeys({ ...deps, log: log.with({ part: 'sops' }) }))

const nameOf = (project: string, { age }: SopsParcel): string =>
  createHash('sha256')
    .update([project, ...age.map(([, enc]) => enc)].join('\n'))
    .digest('base64url')

const WRONG_MAC: Closed = {
  reason: 'SopsMacWrong',
  message:
    'its SOPS file was changed after it was encrypted (the MAC does not match): values, names or their order differ; edit it with sops, not by hand',
}
const MISPLACED: Closed = {
  reason: 'SopsUnreadable',
  message: 'its encrypted values are not those of its SOPS file; a patch or a transformer moved them: encrypt the object as it is applied',
}
const UNKNOWN_FORM: Closed = {
  reason: 'SopsUnreadable',
  message: 'a later version of the server wrote its SOPS documents; upgrade the agent',
}
const unreadable = (why: string): Closed => ({ reason: 'SopsUnreadable', message: `its SOPS file cannot be read: ${why}` })
