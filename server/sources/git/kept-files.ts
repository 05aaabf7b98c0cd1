// Files that were read lately, of all repositories together: memory is the process's, however many repositories there
// are.
import { SizedCache } from '../sized-cache.ts'

const KEPT_BYTES_MAX = 64 * 1024 * 1024
/** The weight of a file besides its content. */
const FILE_BYTES = 250
const KEPT = new SizedCache<Uint8Array>(KEPT_BYTES_MAX, ({ byteLength }) => byteLength + FILE_BYTES)
let owners = 0

/** Those of one repository, by content id: to know the id of a file opens nothing of another repository. */
export class KeptFiles {
  private readonly own = `${owners++} `

  get(oid: string): Uint8Array | undefined {
    return KEPT.get(this.own + oid)
  }

  /** Also marks it as used lately. */
  set(oid: string, bytes: Uint8Array): void {
    KEPT.set(this.own + oid, bytes)
  }
}
