// Renders as people see them: marks in place of secrets, and names alone where no marks can be had. Control and workers
// make the same marks. Pure.
import { createHmac } from 'node:crypto'
import type { K8sObject } from '../../shared/kube/object.ts'
import { isSealed, isSecretRow } from '../../shared/model/sealed-object.ts'
import { type ServiceId, serviceKey } from '../../shared/runtime/ids.ts'
import { isSopsRow } from '../../shared/sops/parcel.ts'

/** `macOf`: keyed digest of the server, in hex. */
export const markKeyOf = (macOf: (text: string) => string, id: ServiceId): string => macOf(`marks\0${serviceKey(id)}`)

/**
 * Equal texts have equal marks, so that a change of a secret is seen; without the key nobody can try out texts.
 * `key`: hex.
 */
export const markBy =
  (key: string) =>
  (text: string): string =>
    `hmac:${createHmac('sha256', Buffer.from(key, 'hex')).update(text).digest('hex').slice(0, 16)}`

/**
 * For proposals: equal texts have equal marks at the same place only. Whoever proposes content tries one value of a
 * secret by a comparison, and not as many as fit into a file.
 */
export const markPlacesBy = (key: string): ((text: string, place?: string) => string) => {
  const mark = markBy(key)
  return (text, place = '') => mark(`${place}\0${text}`)
}

/** Whether an object has to be rendered with marks before it is shown. In a fleet that seals, so has each that may hold
 *  a secret of a Config. */
export const mayShowSecret = (id: ServiceId, row: string, text: string): boolean =>
  isSealed(text) || isSecretRow(id, row) || isSopsRow(text)

/** Objects without their contents. */
export const withoutContents = (documents: ReadonlyMap<string, string>): Map<string, string> =>
  new Map(
    [...documents].map(([row, text]) => {
      const { apiVersion, kind, metadata } = JSON.parse(text) as K8sObject
      const { name, generateName, namespace } = metadata
      return [row, JSON.stringify({ apiVersion, kind, metadata: { name, generateName, namespace } })]
    }),
  )

export const whyWithoutContents = (message: string): string =>
  `the contents of its objects are not shown, because it does not render with marks in place of its secrets: ${message}`
