// The metadata of a resource as every answer of the admin API has it.
import { FLEET } from '../../shared/model/resources.ts'
import type { HealthRuleView } from '../../shared/model/views.ts'
import type { StoredResource } from '../fleet/records.ts'

export function metadataOf(resource: StoredResource): HealthRuleView['metadata'] {
  const { name, project, labels, uid, generation, version, createdMs, updatedMs, deletingMs } = resource
  return {
    name,
    ...(project === FLEET ? {} : { project }),
    labels,
    uid,
    generation,
    version,
    createdMs,
    updatedMs,
    ...(deletingMs === null ? {} : { deletingMs }),
  }
}
