// The marks by which Skerry knows its own objects. Annotations that it reads in users' objects stand with what they
// mean (keep-marks.ts, waves.ts, apply-options.ts, ignore-marks.ts). Keys are promises: never rename one.

import { createHash } from 'node:crypto'
import type { ObjectRef } from './object.ts'
import { refKey } from './object.ts'

/** Label on everything Skerry applies; its value is `<project>.<service>`. Watches select by its existence. */
export const SERVICE_LABEL = 'skerry.dev/service'
/** Annotation `<cluster id>/<project>/<service>:<ref key>`. A mark that names another object was copied by some
 *  controller and is ignored. */
export const TRACKING_ANNOTATION = 'skerry.dev/tracking'
/** Annotation with the commit that last changed the document of the object. */
export const COMMIT_ANNOTATION = 'skerry.dev/commit'
/** Annotation with the digest of the revision that brought that document. */
export const REVISION_ANNOTATION = 'skerry.dev/revision'
export const FIELD_MANAGER = 'skerry'

const LABEL_VALUE_MAX = 63

/** `<project>.<service>`; longer than 63 characters: cut, with a hash suffix, so that it stays a valid and distinct
 *  label value. */
export function serviceLabel(project: string, service: string): string {
  const plain = `${project}.${service}`
  if (plain.length <= LABEL_VALUE_MAX) return plain
  const suffix = createHash('sha256').update(plain).digest('hex').slice(0, 10)
  return `${plain.slice(0, LABEL_VALUE_MAX - 11).replace(/[-.]+$/, '')}-${suffix}`
}

export const trackingValue = (clusterId: string, project: string, service: string, ref: ObjectRef): string =>
  `${clusterId}/${project}/${service}:${refKey(ref)}`

export interface Tracking {
  clusterId: string
  project: string
  service: string
  key: string
}

export function parseTracking(value: string | undefined): Tracking | null {
  if (value === undefined) return null
  const colon = value.indexOf(':')
  const [clusterId, project, service, ...rest] = value.slice(0, Math.max(colon, 0)).split('/')
  if (!clusterId || !project || !service || rest.length > 0) return null
  return { clusterId, project, service, key: value.slice(colon + 1) }
}
