// Opens the SOPS documents of rows with the age keys of this site. A data key is opened once and stays in memory; what
// cannot be opened is a state of its object, with the recipients that would work.
import { createHash } from 'node:crypto'
import { openAge } from '../../shared/adapters/age.ts'
import type { K8sObject } from '../../shared/kube/object.ts'
import type { ServiceId } from '../../shared/runtime/ids.ts'
import { withSopsValues } from '../../shared/sops/object.ts'
import { type OpenSops, openSops } from '../../shared/sops/open.ts'
import { hasSopsMember, parcelsOf, recipientsText, type SopsParcel, sopsMemberOf } from '../../shared/sops/parcel.ts'
import { objectStatus } from '../messages/object-messages.ts'
import type { Decrypted, Decryption } from '../reconcile/snapshot/wanted.ts'
import { SiteKeys, type SiteKeysDeps } from './site-keys.ts'

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
    if (member === null)
      return hasSopsMember(object) ? { kind: 'closed', ...objectStatus('SopsUnreadable.newer') } : { kind: 'plain', object }
    let closed: Closed | null = null
    const opened = (parcel: SopsParcel): OpenSops | null => {
      const held = this.#dataKeys.get(nameOf(project, parcel))
      if (held?.kind !== 'key') {
        closed ??= this.#whyClosed(project, parcel, held)
        return null
      }
      const result = openSops(parcel, held.key)
      if (result.kind === 'open') return result.sops
      closed ??= result.kind === 'mac' ? objectStatus('SopsMacWrong') : objectStatus('SopsUnreadable', { why: result.why })
      return null
    }
    const plain = withSopsValues(object, member, opened)
    return plain === null ? { kind: 'closed', ...(closed ?? objectStatus('SopsUnreadable.misplaced')) } : { kind: 'plain', object: plain }
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
    if (held?.kind === 'wrong') return objectStatus('SopsKeyWrong', { recipient: recipientsText([held.recipient]) })
    const own = this.#keys.of(project)
    const former = recipients.filter((one) => this.#keys.isFormer(one))
    const [other] = this.#keys.all().filter((key) => recipients.includes(key.recipient))
    const sealed = {
      recipients: recipientsText(recipients),
      own: own.length === 0 ? '' : recipientsText(own.map((one) => one.recipient)),
      problems: this.#keys
        .problems()
        .map((problem) => `; ${problem}`)
        .join(''),
    }
    if (former.length > 0) return objectStatus('SopsKeyRotated', { ...sealed, former: recipientsText(former) })
    if (other !== undefined) return objectStatus('SopsKeyMissing.otherProjects', { ...sealed, from: other.from, project })
    return objectStatus('SopsKeyMissing', sealed)
  }
}

export const createSopsDecrypter = ({ log, ...deps }: SiteKeysDeps): SopsDecrypter =>
  new SopsDecrypter(new SiteKeys({ ...deps, log: log.with({ part: 'sops' }) }))

const nameOf = (project: string, { age }: SopsParcel): string =>
  createHash('sha256')
    .update([project, ...age.map(([, enc]) => enc)].join('\n'))
    .digest('base64url')
