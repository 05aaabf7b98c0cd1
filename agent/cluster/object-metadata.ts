// Objects that were requested with their metadata alone. The API server sends them as kind PartialObjectMetadata; here
// they get their own kind back, so that no other file has to know that kind.
import type { ApiResource } from './cluster.ts'

const FORM = 'g=meta.k8s.io;v=v1'
/** Accept header for one object and for a watch. */
export const METADATA_ACCEPT = `application/json;as=PartialObjectMetadata;${FORM}`
/** Accept header for a list by pages. */
export const METADATA_LIST_ACCEPT = `application/json;as=PartialObjectMetadataList;${FORM}`

const PARTIAL = 'PartialObjectMetadata'

/** `object` with the kind and version of the requested resource. Any other value is returned as it is. */
export function ofResource(object: unknown, { group, version, kind }: ApiResource): unknown {
  if (object === null || typeof object !== 'object' || !('kind' in object) || object.kind !== PARTIAL) return object
  return { ...object, apiVersion: group === '' ? version : `${group}/${version}`, kind }
}
