// The wire between server and agents cannot change by accident: a hash of every schema that travels stands beside the
// protocol's number.
import { expect, test } from 'bun:test'
import { z } from 'zod'
import { positionSchema } from '../shared/crdt/position.ts'
import { canonicalJson, sha256Hex } from '../shared/kube/canonical.ts'
import { serviceRowSchema } from '../shared/model/desired.ts'
import { STATUS_SCHEMAS } from '../shared/model/status.ts'
import { checkpointBytes, checkpointSchema, headProofSchema, helloSchema, REFETCH_REASONS, rowLine } from '../shared/protocol/frames.ts'
import { HEAD_HEADER, HEAD_NONCE, HEAD_PARAM, headBytes } from '../shared/protocol/head.ts'
import {
  joinAnswerBytes,
  joinAnswerSchema,
  joinBytes,
  joinProofBytes,
  joinRequestSchema,
  joinTokenHash,
  joinTokenId,
  joinTokenProof,
  joinTokenText,
} from '../shared/protocol/join.ts'
import { keyLinkBytes, keyLinksSchema, keyRevocationBytes } from '../shared/protocol/key-links.ts'
import { BUCKET_COUNTS, bucketCountFor, bucketOf, refetchHeadSchema, SUM_BYTES } from '../shared/protocol/refetch.ts'
import { formerClustersBytes, removalBytes, removalSchema } from '../shared/protocol/removal.ts'
import { ROUTES } from '../shared/protocol/routes.ts'
import { BOUND_PARAM, pageBinding, SEAL_PARAM } from '../shared/protocol/sealed-keys.ts'
import { sessionAnswerBytes, sessionAnswerSchema, sessionProofBytes, sessionRequestSchema } from '../shared/protocol/session.ts'
import { REJECT_CODES, REV_INCARNATION, statusAnswerSchema, statusRequestSchema } from '../shared/protocol/status.ts'
import { SLICE_PARAM, TRANSFER_HEADER, transferText } from '../shared/protocol/transfer.ts'
import { MIN_SUPPORTED_PROTOCOL_VERSION, PROTOCOL_HEADER, PROTOCOL_VERSION } from '../shared/protocol/version.ts'
import { problemBodySchema } from '../shared/runtime/error.ts'
import { type AgentId, clusterIdSchema } from '../shared/runtime/ids.ts'
import { SOPS, SOPS_PARAM } from '../shared/sops/parcel.ts'

/** One line a version, never changed afterwards. */
const HASHES: Record<number, string> = {
  1: 'a2a6177ecd33eec7',
  2: '1b0cde82be21f4b8',
}

const WHAT_TO_DO = `What travels between server and agents changed. Agents in the field may be two versions older than the server, and the other way round.
  1. Can the other side, unchanged, still read it and do the right thing? (A new optional member that nobody must know: yes.) Then put the new hash in place of the old.
  2. Else a receiver learns the change one release before anyone sends it: raise PROTOCOL_VERSION in shared/protocol/version.ts, add its dated line there and its hash here,
     and keep reading the old form until MIN_SUPPORTED_PROTOCOL_VERSION has passed it.`

const position = { dbId: 'd', term: 1, dv: 2, hash: 'h' }
const hello = { epoch: 3, schema: 1, ordinal: 5, from: null, to: position, siteId: 's' }
const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes)

const WIRE = {
  schemas: Object.fromEntries(
    Object.entries({
      position: positionSchema,
      hello: helloSchema,
      checkpoint: checkpointSchema,
      headProof: headProofSchema,
      refetchHead: refetchHeadSchema,
      keyLinks: keyLinksSchema,
      joinRequest: joinRequestSchema,
      joinAnswer: joinAnswerSchema,
      sessionRequest: sessionRequestSchema,
      sessionAnswer: sessionAnswerSchema,
      removal: removalSchema,
      statusRequest: statusRequestSchema,
      statusAnswer: statusAnswerSchema,
      problem: problemBodySchema,
      serviceRow: serviceRowSchema,
      ...STATUS_SCHEMAS,
    }).map(([name, schema]) => [name, z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' })]),
  ),
  // What is signed is as much a promise as what is parsed.
  signed: [
    text(joinProofBytes('token', 'key', 'recipient', 'cluster')),
    text(joinBytes('id', { publicKey: 'key', recipient: 'recipient', cluster: 'cluster', clusterUid: 'uid' })),
    [joinTokenHash('secret'), joinTokenId('ab'), joinTokenProof('ab', new Uint8Array(1))],
    text(headBytes('cluster', 'nonce', position)),
    text(
      joinAnswerBytes(
        { clusterId: clusterIdSchema.parse('c-0123456789abcdef'), agentId: 'agent' as AgentId, incarnation: 2, serverKeys: ['one', 'two'] },
        'key',
      ),
    ),
    text(sessionProofBytes('agent', null, 'nonce')),
    text(sessionAnswerBytes({ token: 'token', clusterId: clusterIdSchema.parse('c-0123456789abcdef'), incarnation: 2 }, 'nonce')),
    text(checkpointBytes('cluster', hello, { count: 4, rows: 's' })),
    text(checkpointBytes('cluster', { ...hello, from: position, keep: '0' }, { count: 4, rows: 's' })),
    text(keyLinkBytes('new', 'old')),
    text(keyRevocationBytes('oldest')),
    text(removalBytes('agent', 'cluster', null)),
    text(removalBytes('agent', 'cluster', 'challenge')),
    text(formerClustersBytes('cluster', ['one', 'two'])),
    joinTokenText('secret', 'fingerprint'),
  ],
  // What is no JSON.
  rows: [rowLine({ id: 'i', doc: '{}', colVersion: 1, cl: 3 }), rowLine({ id: 'i', doc: null, colVersion: 2, cl: 2 })],
  transfer: [TRANSFER_HEADER, transferText({ id: 'i', parts: 2, bytes: 3 }), SLICE_PARAM],
  buckets: [
    SUM_BYTES,
    BUCKET_COUNTS,
    [0, 1, 63, 64, 4_095, 4_096].map(bucketCountFor),
    BUCKET_COUNTS.map((n) => bucketOf(0xabn << 120n, n)),
  ],
  words: {
    head: [HEAD_PARAM, HEAD_HEADER, String(HEAD_NONCE)],
    routes: ROUTES,
    header: PROTOCOL_HEADER,
    refetch: REFETCH_REASONS,
    reject: REJECT_CODES,
    revIncarnation: REV_INCARNATION,
    sealed: [SEAL_PARAM, BOUND_PARAM, SOPS_PARAM, SOPS, pageBinding({ epoch: 3, to: position })],
  },
}

/** What a field means, in words, does not travel. */
const withoutWords = (key: string, value: unknown): unknown => (key === 'description' && typeof value === 'string' ? undefined : value)

test('the schemas of the wire are those of the protocol’s number', () => {
  const hash = sha256Hex(canonicalJson(JSON.parse(JSON.stringify(WIRE), withoutWords))).slice(0, 16)
  expect(hash === HASHES[PROTOCOL_VERSION] ? '' : `${WHAT_TO_DO}\n  The hash now: ${hash}`).toBe('')
})

test('the numbers are in order, and each version served has its line', () => {
  expect(MIN_SUPPORTED_PROTOCOL_VERSION).toBeLessThanOrEqual(PROTOCOL_VERSION)
  for (let version = MIN_SUPPORTED_PROTOCOL_VERSION; version <= PROTOCOL_VERSION; version++) expect(HASHES[version]).toBeDefined()
})
