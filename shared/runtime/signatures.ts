// Keys and signatures as they travel.
import { z } from 'zod'

/** Raw 32-byte public keys, base64url without padding. */
export const publicKeySchema = z.string().regex(/^[A-Za-z0-9_-]{43}$/)
/** 64-byte Ed25519 signatures, base64url without padding. */
export const signatureSchema = z.string().regex(/^[A-Za-z0-9_-]{86}$/)
