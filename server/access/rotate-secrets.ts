// CG7: another key for the secrets of Configs. Every secret is sealed again under it before the earlier keys are
// destroyed. A server that is stopped in between has both, and continues when the command is given again.
import type { ResourceKey } from '../fleet/records.ts'
import type { Store } from '../store/store.ts'
import { resealConfig } from './config-secrets.ts'
import type { SecretBox } from './secret-box.ts'

export interface ResealCounts {
  configs: number
  secrets: number
  /** Secrets that were sealed under a key that this server does not have: they stay as they are. */
  unopened: number
}

const PAGE = 200

export async function rotateSecrets(store: Pick<Store, 'listResources' | 'resealConfig'>, box: SecretBox): Promise<ResealCounts> {
  box.rotate()
  const counts: ResealCounts = { configs: 0, secrets: 0, unopened: 0 }
  // A write that was sealed under the earlier key may commit while the others are read.
  for (let rounds = 0, found = 1; found > 0 || rounds < 2; rounds++) {
    const round = await resealAll(store, box)
    found = round.configs
    counts.configs += round.configs
    counts.secrets += round.secrets
    counts.unopened = round.unopened
  }
  box.forgetEarlier()
  return counts
}

async function resealAll(store: Pick<Store, 'listResources' | 'resealConfig'>, box: SecretBox): Promise<ResealCounts> {
  const counts: ResealCounts = { configs: 0, secrets: 0, unopened: 0 }
  for (let after: string | undefined; ; ) {
    const page = await store.listResources('Config', { limit: PAGE, ...(after === undefined ? {} : { after }) })
    for (const { project, name, version, spec } of page.items) {
      const anew = resealConfig(box, { project, name }, spec)
      if (anew === null) continue
      counts.unopened += anew.unopened
      if (anew.secrets === 0) continue
      counts.configs++ // also one that somebody wrote meanwhile: the next round looks at it again
      const key: ResourceKey = { kind: 'Config', project, name }
      if (await store.resealConfig(key, version, anew.spec)) counts.secrets += anew.secrets
    }
    if (page.next === null) return counts
    after = page.next
  }
}
