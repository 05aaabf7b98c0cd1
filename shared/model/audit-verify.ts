// Verifies an export of the audit log, without a server: its chain, its signatures, and that it continues to its signed
// end.
import { fingerprint } from '../runtime/keys.ts'
import { type AuditAnchor, type AuditBreak, AuditChain, type AuditHead, type AuditLine, isSignedAnchor, isSignedHead } from './audit.ts'

export interface AuditReport {
  /** Entries that follow from each other. */
  count: number
  /** Null means that the log is whole. */
  broken: AuditBreak | null
  anchor: AuditAnchor | null
  head: AuditHead | null
  /** Fingerprints of the keys that signed the anchor and the end. */
  signers: string[]
}

export interface AuditTrust {
  /** Fingerprint that must have signed; undefined means any key. */
  serverKey?: string | undefined
  /** An end that is known from before: that entry must still be in the log. */
  expected?: { seq: number; hash: string } | undefined
}

/** Takes the lines of an export, in their order. */
export class AuditVerifier {
  private readonly report: AuditReport = { count: 0, broken: null, anchor: null, head: null, signers: [] }
  private readonly trust: AuditTrust
  private chain: AuditChain | null = null

  constructor(trust: AuditTrust = {}) {
    this.trust = trust
  }

  /** A text in place of a line means that it could not be read. False after the first broken line: what follows says
   *  nothing. */
  take(line: AuditLine | string): boolean {
    this.report.broken ??= this.breakOf(line)
    this.report.count = this.chain?.count ?? 0
    return this.report.broken === null
  }

  end(): AuditReport {
    const { report } = this
    const { expected } = this.trust
    const next = this.next()
    if (report.head === null) report.broken ??= { seq: next, problem: 'the export has no signed end: it is incomplete' }
    else if (expected !== undefined && expected.seq > report.head.seq)
      report.broken ??= { seq: next, problem: `missing: the log had entries up to ${expected.seq} before` }
    return report
  }

  private next(): number {
    return (this.chain?.seq ?? 0) + 1
  }

  private breakOf(line: AuditLine | string): AuditBreak | null {
    if (typeof line === 'string') return { seq: this.next(), problem: line }
    if (this.report.head !== null) return { seq: this.next(), problem: 'the export continues after its end' }
    if (line.type === 'anchor') return this.anchorBreak(line.anchor)
    this.chain ??= new AuditChain(null)
    if (line.type === 'head') return this.headBreak(this.chain, line.head)
    const { entry } = line
    const broken = this.chain.takeRecord(entry)
    const { expected } = this.trust
    if (broken !== null || expected?.seq !== entry.seq || expected.hash === entry.hash) return broken
    return { seq: entry.seq, problem: 'differs from the expected hash' }
  }

  private anchorBreak(anchor: AuditAnchor): AuditBreak | null {
    if (this.chain !== null) return { seq: this.next(), problem: 'an anchor is between the entries' }
    if (!isSignedAnchor(anchor)) return { seq: anchor.seq, problem: 'the anchor has a wrong signature' }
    if (!this.isTrusted(anchor.key)) return { seq: anchor.seq, problem: 'the anchor is signed by another key' }
    this.report.anchor = anchor
    this.chain = new AuditChain(anchor)
    return null
  }

  private headBreak(chain: AuditChain, head: AuditHead): AuditBreak | null {
    if (!isSignedHead(head)) return { seq: head.seq, problem: 'the end has a wrong signature' }
    if (!this.isTrusted(head.key)) return { seq: head.seq, problem: 'the end is signed by another key' }
    const broken = chain.end(head)
    if (broken === null) this.report.head = head
    return broken
  }

  private isTrusted(key: string): boolean {
    const print = fingerprint(key)
    if (!this.report.signers.includes(print)) this.report.signers.push(print)
    return this.trust.serverKey === undefined || this.trust.serverKey === print
  }
}
