// A signed head: the server's word that a replica is where the server is, at the time of the request. An agent adds
// `head=NONCE` to GET desired; the answer "nothing new" (204) then carries HEAD_HEADER. A 204 alone proves nothing:
// anybody on the way can send one. Servers of protocol 1 leave the parameter unread and send no header.
import { cursorText, type Position } from '../crdt/position.ts'

export const HEAD_PARAM = 'head'
export const HEAD_HEADER = 'skerry-head'
/** 128 random bits, base64url without padding. */
export const HEAD_NONCE = /^[A-Za-z0-9_-]{22}$/

/** The signed bytes: the position that the agent sent as its cursor. */
export const headBytes = (clusterId: string, nonce: string, position: Position): Uint8Array =>
  new TextEncoder().encode(['skerry-head-v1', clusterId, nonce, cursorText(position)].join('\n'))
