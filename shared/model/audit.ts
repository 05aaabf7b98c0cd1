// One stored, listed and exported entry of the audit log, and the chain that joins entries: each one holds the hash of
// the entry before it.
import { z } from 'zod'
import { canonicalJson, sha256Hex } from '../kube/canonical.ts'
import { verifyBytes } from '../runtime/keys.ts'
import { publicKeySchema, signatureSchema } from '../runtime/signatures.ts'
import { AUDIT_RESULTS } from './audit-words.ts'

export const AUDIT_ACTOR_KINDS = ['token', 'user', 'workload', 'agent', 'system', 'local', 'stranger'] as const
export const auditActorSchema = z.strictObject({
  kind: z.enum(AUDIT_ACTOR_KINDS).describe('Credential that was used; local means a command on the server, stranger means none.'),
  id: z.string().describe('Stable id of the credential or account.'),
  name: z.string(),
  provider: z.string().exactOptional().describe('Sign-in provider that vouches for the name.'),
  verified: z.boolean().describe('Whether the server checked a credential; false means that the name is self-declared.'),
})
export type AuditActor = z.infer<typeof auditActorSchema>

/** Members that are not known are absent, so that equal entries have equal bytes. */
export const auditEntrySchema = z.strictObject({
  seq: z.int().min(1).describe('Position in the log; without gaps.'),
  at: z.iso.datetime().describe('Time of the commit.'),
  actor: auditActorSchema,
  verb: z.string(),
  kind: z.string(),
  project: z.string().exactOptional(),
  name: z.string().exactOptional(),
  cluster: z.string().exactOptional(),
  result: z.enum(AUDIT_RESULTS),
  before: z.string().exactOptional().describe('SHA-256 of the object before the change.'),
  after: z.string().exactOptional().describe('SHA-256 of the object after the change.'),
  fields: z.array(z.string()).exactOptional().describe('Paths of changed fields; values are never recorded.'),
  moreFields: z.int().exactOptional().describe('Changed fields beyond those listed.'),
  detail: z.string().exactOptional(),
  reason: z.string().exactOptional().describe('Reason that the caller gave with --reason.'),
  cause: z.string().exactOptional().describe('Event that made the server act.'),
  from: z.string().exactOptional().describe('Address of the caller.'),
  requestId: z.string().exactOptional(),
  count: z.int().min(2).exactOptional().describe('Number of equal attempts that the entry stands for.'),
  prev: z.string().describe('Hash of the entry before.'),
})
export type AuditEntry = z.infer<typeof auditEntrySchema>

/** With its own hash: SHA-256 over the canonical JSON of all other members. */
export const auditRecordSchema = z.strictObject({ ...auditEntrySchema.shape, hash: z.string() })
export type AuditRecord = z.infer<typeof auditRecordSchema>

/** `prev` of the first entry of all. */
export const AUDIT_GENESIS = '0'.repeat(64)

export const auditHash = (doc: string): string => sha256Hex(doc)

/** Replaces deleted entries: the position and hash of the last of them, signed by the server. */
export const auditAnchorSchema = z.strictObject({
  seq: z.int().min(1).describe('Position of the last deleted entry.'),
  hash: z.string().describe('Hash of the last deleted entry.'),
  deleted: z.int().min(1).describe('Number of deleted entries since the log began.'),
  at: z.iso.datetime(),
  key: publicKeySchema.describe('Public key that signed.'),
  signature: signatureSchema,
})
export type AuditAnchor = z.infer<typeof auditAnchorSchema>

/** The newest entry, signed: an export that was cut off at its end does not reach it. */
export const auditHeadSchema = z.strictObject({
  seq: z.int().min(0),
  hash: z.string(),
  at: z.iso.datetime(),
  key: publicKeySchema,
  signature: signatureSchema,
})
export type AuditHead = z.infer<typeof auditHeadSchema>

const signed = (purpose: string, value: object): Uint8Array =>
  new TextEncoder().encode(`skerry-audit-${purpose}-v1\n${canonicalJson(value)}`)

export const auditAnchorBytes = ({ seq, hash, deleted, at, key }: Omit<AuditAnchor, 'signature'>): Uint8Array =>
  signed('anchor', { seq, hash, deleted, at, key })
export const auditHeadBytes = ({ seq, hash, at, key }: Omit<AuditHead, 'signature'>): Uint8Array => signed('head', { seq, hash, at, key })

export const isSignedAnchor = (anchor: AuditAnchor): boolean => verifyBytes(anchor.key, auditAnchorBytes(anchor), anchor.signature)
export const isSignedHead = (head: AuditHead): boolean => verifyBytes(head.key, auditHeadBytes(head), head.signature)

/** The first position that does not follow from the ones before it. */
export interface AuditBreak {
  seq: number
  problem: string
}

/** Checks entries one after the other, oldest first. */
export class AuditChain {
  seq: number
  hash: string
  count = 0

  constructor(anchor: AuditAnchor | null) {
    this.seq = anchor?.seq ?? 0
    this.hash = anchor?.hash ?? AUDIT_GENESIS
  }

  /** Null when the entry follows. `doc`: its canonical JSON without `hash`. */
  take({ seq, prev, hash, doc }: { seq: number; prev: string; hash: string; doc: string }): AuditBreak | null {
    const expected = this.seq + 1
    if (seq > expected) return { seq: expected, problem: seq === expected + 1 ? 'missing' : `missing, and so are those up to ${seq - 1}` }
    if (seq < expected) return { seq, problem: `out of order: entry ${expected} was expected` }
    if (auditHash(doc) !== hash) return { seq, problem: 'changed: its content does not match its hash' }
    if (prev !== this.hash) return { seq, problem: 'does not follow the entry before it: the hash of that entry differs' }
    this.seq = seq
    this.hash = hash
    this.count += 1
    return null
  }

  takeRecord(record: AuditRecord): AuditBreak | null {
    const { hash, ...entry } = record
    return this.take({ seq: entry.seq, prev: entry.prev, hash, doc: canonicalJson(entry) })
  }

  /** Whether the chain reaches the newest entry. */
  end(head: Pick<AuditHead, 'seq' | 'hash'>): AuditBreak | null {
    if (head.seq > this.seq) return { seq: this.seq + 1, problem: `missing: the log has entries up to ${head.seq}` }
    if (head.seq < this.seq) return { seq: head.seq + 1, problem: `the log ends at entry ${head.seq}` }
    return head.hash === this.hash ? null : { seq: head.seq, problem: 'changed: the log ends with another hash' }
  }
}

export const auditStateSchema = z.strictObject({
  head: auditHeadSchema,
  anchor: auditAnchorSchema.nullable().describe('Null means that no entry was deleted yet.'),
  keys: z
    .array(z.strictObject({ publicKey: publicKeySchema, isRevoked: z.boolean() }))
    .describe('Signing keys of the server, oldest first.'),
})
export type AuditState = z.infer<typeof auditStateSchema>

export const auditPageSchema = z.strictObject({
  items: z.array(z.union([auditRecordSchema, z.strictObject({ seq: z.int(), hash: z.string(), unreadable: z.literal(true) })])),
  mismatched: z.array(z.int()).describe('Entries whose index columns differ from their content.'),
})

/** Lines of an export: the anchor if there is one, entries, the signed newest position. */
export const auditLineSchema = z.union([
  z.strictObject({ type: z.literal('anchor'), anchor: auditAnchorSchema }),
  z.strictObject({ type: z.literal('entry'), entry: auditRecordSchema }),
  z.strictObject({ type: z.literal('head'), head: auditHeadSchema }),
])
export type AuditLine = z.infer<typeof auditLineSchema>
