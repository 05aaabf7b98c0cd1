// Live objects without the values of Secrets. Keys stay, so that people see which values exist. Pure.

import type { K8sObject } from '../../shared/kube/object.ts'
import { MARK } from '../cluster/redact/marks.ts'
import { isSecretKind, isSensitiveName } from '../cluster/redact/shown-fields.ts'

/** kubectl keeps a whole object here, values of Secrets too. */
export const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration'
const CONTENTS = ['data', 'stringData', 'binaryData'] as const
const IDENTITY: ReadonlySet<string> = new Set(['apiVersion', 'kind', 'metadata'])

export interface Masked {
  object: K8sObject
  /** Paths of hidden values. */
  masked: string[]
}

/** `isHidden`: the site hides the contents of this kind. */
export function masked(live: K8sObject, { isHidden = false, managedFields = false } = {}): Masked {
  const paths: string[] = []
  const { managedFields: fields, ...metadata } = live.metadata
  const object: K8sObject = {
    ...live,
    metadata: { ...metadata, ...(managedFields && fields !== undefined ? { managedFields: fields } : {}) },
  }
  const isSecret = isSecretKind(live.kind)
  if (isHidden || isSecret) {
    hideAnnotation(object, paths)
    for (const key of CONTENTS) if (isRecord(object[key])) object[key] = hiddenValues(object[key], key, paths)
  }
  if (isHidden)
    for (const key of Object.keys(object)) {
      if (IDENTITY.has(key) || (CONTENTS.some((name) => name === key) && isRecord(object[key]))) continue
      object[key] = MARK
      paths.push(key)
    }
  return { object: isHidden || isSecret ? object : (withoutSecrets(object, '', paths) as K8sObject), masked: paths.sort() }
}

/** A part of an object, such as a container that only one of two compared objects has. */
export const maskedPart = (value: unknown): unknown => withoutSecrets(value, '', [])

function hideAnnotation(object: K8sObject, paths: string[]): void {
  const { annotations } = object.metadata
  if (annotations?.[LAST_APPLIED] === undefined) return
  object.metadata = { ...object.metadata, annotations: { ...annotations, [LAST_APPLIED]: MARK } }
  paths.push(`metadata.annotations.${LAST_APPLIED}`)
}

function hiddenValues(values: Record<string, unknown>, at: string, paths: string[]): Record<string, unknown> {
  return Object.fromEntries(
    Object.keys(values).map((key) => {
      paths.push(`${at}.${key}`)
      return [key, MARK]
    }),
  )
}

/** In other kinds the values of environment variables with secret names, and the fields with a copy of them. */
function withoutSecrets(value: unknown, at: string, paths: string[]): unknown {
  if (Array.isArray(value)) return value.map((item, index) => withoutSecrets(item, `${at}[${index}]`, paths))
  if (!isRecord(value)) return value
  const isVariable = typeof value['name'] === 'string' && typeof value['value'] === 'string' && isSensitiveName(value['name'])
  return Object.fromEntries(
    Object.entries(value).map(([key, member]) => {
      const path = at === '' ? key : `${at}.${key}`
      if ((isVariable && key === 'value') || key === LAST_APPLIED) {
        paths.push(path)
        return [key, MARK]
      }
      return [key, withoutSecrets(member, path, paths)]
    }),
  )
}

const isRecord = (value: unknown): value is Record<string, unknown> => value !== null && typeof value === 'object' && !Array.isArray(value)
