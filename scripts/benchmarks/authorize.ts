// Measures the cost of one decision: a caller with many groups and bindings, asked about objects of many projects, in
// an installation of many roles.
import { createAuthorizer } from '../../server/access/authorizer.ts'
import type { Principal } from '../../server/access/principal.ts'
import type { StoredResource } from '../../server/fleet/records.ts'
import { percentile, rounded } from './figures.ts'
import type { Say } from './parts.ts'

const ROLES = 200
const BINDINGS = 1_000
const GROUPS = 50
const BATCHES = 200
const ASKED_A_BATCH = 500

/** The 95th percentile of batches, by decision; the first decision of a caller, which puts its grants together, on the
 *  side. */
export async function measureAuthorize(say: Say = () => {}): Promise<{ authorize_us: number }> {
  const authorizer = createAuthorizer({ listResources: async (kind) => ({ items: kind === 'Role' ? roles() : bindings(), next: null }) })
  await authorizer.loaded()
  const caller: Principal = {
    ...{ id: 's-1', kind: 'user', name: 'ada', provider: 'corp', subject: 'ada', email: 'ada@example.com' },
    ...{ groups: Array.from({ length: GROUPS }, (_, index) => `team-${index}`), role: null, projects: null },
  }
  const startNs = Bun.nanoseconds()
  authorizer.allows({ ...caller }, { verb: 'read', kind: 'Service', project: 'p-0', name: 'web' })
  const firstUs = (Bun.nanoseconds() - startNs) / 1_000
  const tookUs: number[] = []
  let allowed = 0
  for (let batch = 0; batch < BATCHES; batch++) {
    const fromNs = Bun.nanoseconds()
    for (let asked = 0; asked < ASKED_A_BATCH; asked++)
      if (authorizer.allows(caller, { verb: asked % 2 === 0 ? 'read' : 'write', kind: 'Service', project: `p-${asked}`, name: 'web' }))
        allowed += 1
    tookUs.push((Bun.nanoseconds() - fromNs) / 1_000 / ASKED_A_BATCH)
  }
  const p95 = percentile(tookUs, 95)
  const grants = authorizer.grantsOf(caller).length
  say(
    `${BATCHES * ASKED_A_BATCH} decisions over ${grants} grants, ${allowed} allowed, p95 ${rounded(p95)} µs; first of a caller ${rounded(firstUs)} µs`,
  )
  return { authorize_us: rounded(p95) }
}

const stored = (kind: 'Role' | 'RoleBinding', name: string, spec: object): StoredResource => ({
  ...{ kind, project: '', name, uid: name, generation: 1, version: 1, labels: {}, spec: JSON.stringify(spec) },
  ...{ createdMs: 0, updatedMs: 0, deletingMs: null },
})
const roles = () =>
  Array.from({ length: ROLES }, (_, index) =>
    stored('Role', `role-${index}`, {
      rules: [
        { verbs: ['read', 'sync'], kinds: ['Service', 'Config'] },
        { verbs: ['write'], kinds: ['Service'] },
      ],
    }),
  )
/** Every twentieth is of a group of the caller. */
const bindings = () =>
  Array.from({ length: BINDINGS }, (_, index) =>
    stored('RoleBinding', `binding-${index}`, {
      role: `role-${index % ROLES}`,
      subjects: [{ group: `corp:team-${index % (GROUPS * 20)}` }],
      projects: [`p-${index}`, `p-${index + 1}`],
    }),
  )

if (import.meta.main) process.stdout.write(`${JSON.stringify(await measureAuthorize((text) => void process.stderr.write(`${text}\n`)))}\n`)
