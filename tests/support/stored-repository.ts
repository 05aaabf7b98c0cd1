// A repository as the fleet store holds it, for whoever needs one and nothing of what it says.
import type { StoredResource } from '../../server/fleet/records.ts'

export const storedRepository: StoredResource = {
  kind: 'Repository',
  project: 'default',
  name: 'apps',
  uid: 'uid-1',
  generation: 1,
  version: 1,
  labels: {},
  spec: '{}',
  createdMs: 0,
  updatedMs: 0,
  deletingMs: null,
}
