// The keys of the queues of ingest: repositories, services, and services whose clusters joined a moment ago.
import type { ServiceId } from '../../shared/runtime/ids.ts'
import type { StoredResource } from '../fleet/records.ts'

export type RepositoryKey = `repository/${string}/${string}`
export type ServiceKeyText = `service/${string}/${string}`
/** Clusters of a service that are young (FA6). */
export type YoungKey = `young/${string}/${string}`
export type QueueKey = RepositoryKey | ServiceKeyText | YoungKey

export const repositoryKey = ({ project, name }: Pick<StoredResource, 'project' | 'name'>): RepositoryKey => `repository/${project}/${name}`
export const serviceKeyText = ({ project, name }: Pick<StoredResource, 'project' | 'name'>): ServiceKeyText => `service/${project}/${name}`
export const serviceKeyTextOf = ({ project, service }: ServiceId): ServiceKeyText => `service/${project}/${service}`
export const youngKey = ({ project, service }: ServiceId): YoungKey => `young/${project}/${service}`

/** Projects share the workers of a queue. */
export const projectOf = (key: QueueKey): string => key.split('/')[1] ?? ''

export const isRepositoryKey = (key: QueueKey): key is RepositoryKey => key.startsWith('repository/')
export const isYoungKey = (key: QueueKey): key is YoungKey => key.startsWith('young/')
