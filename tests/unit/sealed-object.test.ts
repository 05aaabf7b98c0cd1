import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { exportFrom, exportTo } from '../../shared/adapters/hpke.ts'
import { canonicalJson } from '../../shared/kube/canonical.ts'
import type { K8sObject } from '../../shared/kube/object.ts'
import { isSealed, objectKeyOf, openObject, openWith, sealingKeysOf, sealMarkOf, sealObject } from '../../shared/model/sealed-object.ts'
import { SEAL_INFO, sealContext, unwrapKey, WRAP_CHARS, wrapKey } from '../../shared/protocol/sealed-keys.ts'
import { generateKey } from '../../shared/runtime/keys.ts'

const root = { id: '0a1b2c3d', secret: new Uint8Array(32).fill(7) }
const shop = { project: 'default', service: 'shop' }
const keys = sealingKeysOf(root, shop)
const ID = 'object/default/shop//Secret/web/db'
const secret: K8sObject = {
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: {
    name: 'db',
    namespace: 'web',
    labels: { app: 'shop', 'skerry.dev/x': 'y' },
    annotations: { 'helm.sh/hook-weight': '3', note: 'tall-tale' },
  },
  type: 'Opaque',
  data: { password: Buffer.from('correct horse').toString('base64') },
}
const sealed = (object: K8sObject, id = ID, of = keys) => sealObject(of, id, object, canonicalJson(object))

describe('a sealed object', () => {
  test('opens to the same bytes, and shows only what routes and orders it', () => {
    const doc = sealed(secret)
    expect(openWith(keys, ID, doc)).toBe(canonicalJson(secret))
    const { $sealed: _, ...shell } = JSON.parse(doc)
    expect(shell).toEqual({
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'db', namespace: 'web', labels: { 'skerry.dev/x': 'y' }, annotations: { 'helm.sh/hook-weight': '3' } },
    })
    expect(isSealed(doc)).toBe(true)
    expect(isSealed(canonicalJson(secret))).toBe(false)
  })

  test('SL6 has equal bytes for equal objects and other bytes for any other', () => {
    expect(sealed(secret)).toBe(sealed(structuredClone(secret)))
    expect(sealed({ ...secret, type: 'x' })).not.toBe(sealed(secret))
  })

  test('any object survives', () => {
    const texts = fc.dictionary(fc.string(), fc.string())
    const metadata = fc.record({ name: fc.string(), labels: texts, annotations: texts }, { requiredKeys: ['name'] })
    const object = fc.record({
      apiVersion: fc.constant('v1'),
      kind: fc.constant('Secret'),
      metadata,
      data: fc.jsonValue(),
      spec: fc.jsonValue(),
    })
    fc.assert(
      fc.property(object, (given) => {
        const plain = JSON.parse(canonicalJson(given)) as K8sObject
        const doc = sealed(plain)
        expect(openWith(keys, ID, doc)).toBe(canonicalJson(plain))
        expect(doc.includes('\n')).toBe(false)
      }),
    )
  })

  test('SL2 opens nowhere else: not as another row, service or cluster, not after a change', () => {
    const doc = sealed(secret)
    const mark = sealMarkOf(doc)
    if (mark === null) throw new Error('no mark')
    const key = objectKeyOf(keys, mark.mac)
    expect(openObject(key, ID, doc)).toBe(canonicalJson(secret))
    expect(openObject(key, 'object/default/shop//Secret/web/other', doc)).toBeNull()
    expect(openObject(key, ID, doc.replace('"helm.sh/hook-weight":"3"', '"helm.sh/hook-weight":"4"'))).toBeNull()
    expect(openObject(key, ID, doc.replace('"namespace":"web"', '"namespace":"evil"'))).toBeNull()
    const other = sealingKeysOf(root, { project: 'default', service: 'other' })
    expect(openWith(other, ID, doc)).toBeNull()
    expect(openObject(objectKeyOf(keys, sealMarkOf(sealed({ ...secret, type: 'x' }))?.mac ?? ''), ID, doc)).toBeNull()
  })
})

describe('a wrapped key', () => {
  test('opens for its row in its cluster, with the key of the recipient', async () => {
    const recipient = generateKey('x25519')
    const { enc, secret: sent } = await exportTo(recipient.publicKey, SEAL_INFO, sealContext('c-1'))
    const got = await exportFrom(recipient.privateKey, enc, SEAL_INFO, sealContext('c-1'))
    expect(got).toEqual(sent)
    if (got === null) throw new Error('no secret')
    const mark = { key: '0a1b2c3d', mac: 'a'.repeat(22) }
    const key = new Uint8Array(32).fill(9)
    const wrapped = wrapKey(sent, 'c-1', ID, mark, key)
    expect(wrapped).toHaveLength(WRAP_CHARS)
    expect(new Uint8Array(unwrapKey(got, 'c-1', ID, mark, wrapped) ?? [])).toEqual(key)
    expect(unwrapKey(got, 'c-2', ID, mark, wrapped)).toBeNull()
    expect(unwrapKey(got, 'c-1', `${ID}2`, mark, wrapped)).toBeNull()
    expect(unwrapKey(got, 'c-1', ID, { ...mark, mac: 'b'.repeat(22) }, wrapped)).toBeNull()
    const elsewhere = await exportFrom(generateKey('x25519').privateKey, enc, SEAL_INFO, sealContext('c-1'))
    expect(unwrapKey(elsewhere ?? sent, 'c-1', ID, mark, wrapped)).toBeNull()
    expect(await exportFrom(recipient.privateKey, Buffer.alloc(32).toString('base64url'), SEAL_INFO, sealContext('c-1'))).toBeNull()
  })

  test('is exported as RFC 9180 says (A.2.1)', async () => {
    const hex = (text: string) => Buffer.from(text, 'hex')
    // PKCS#8 of an X25519 key is this head and the 32 bytes of the key.
    const pkcs8 = Buffer.concat([
      hex('302e020100300506032b656e04220420'),
      hex('8057991eef8f1f1af18f4a9491d16a1ce333f695d4db8e38da75975c4478e0fb'),
    ])
    const enc = hex('1afa08d3dec047a643885163f1180476fa7ddb54c6a8029ea33f95796bf2ac4a').toString('base64url')
    const info = hex('4f6465206f6e2061204772656369616e2055726e')
    const exported = async (context: string) =>
      Buffer.from((await exportFrom(pkcs8.toString('base64url'), enc, info, hex(context))) ?? []).toString('hex')
    expect(await exported('54657374436f6e74657874')).toBe('5acb09211139c43b3090489a9da433e8a30ee7188ba8b0a9a1ccf0c229283e53')
  })
})
