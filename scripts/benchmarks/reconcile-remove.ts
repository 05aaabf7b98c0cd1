// A thousand small services that leave a cluster at once: how many requests that costs, watches among them, and how
// long it takes until the server knows that all are gone.
import { rounded } from './figures.ts'
import type { Part } from './parts.ts'
import { APPS, CONTROLLER_QPS, rollOut } from './reconcile-apps.ts'
import { type ReconcileSite, startReconcileSite, until } from './reconcile-site.ts'

interface Named {
  metadata: { name: string }
}

/** All by one request. */
async function deleteAll({ fleet }: ReconcileSite): Promise<void> {
  const names: string[] = []
  for (let next = ''; ; ) {
    const page = await fleet.api<{ items: Named[]; continue: string | null }>(`/services?limit=500${next}`)
    names.push(...page.items.map(({ metadata }) => metadata.name))
    if (page.continue === null) break
    next = `&continue=${encodeURIComponent(page.continue)}`
  }
  await fleet.api('/projects/default/delete-services', { method: 'POST', body: { names } })
}

export const remove: Part = async (say) => {
  const site = await startReconcileSite('remove', { controllers: true, controllerQps: CONTROLLER_QPS })
  try {
    say(`all of ${APPS} services are ready after ${rounded(await rollOut(site), 0)} ms`)
    const mark = site.cluster.auditMark()
    const started = performance.now()
    await deleteAll(site)
    const calledMs = performance.now() - started
    const left = async () => (await site.fleet.api<{ items: Named[] }>('/services?limit=1')).items.length
    await until(`${APPS} services are gone`, async () => (await left()) === 0, 300_000, 100)
    const tookMs = performance.now() - started
    // A watch is logged when it begins and when it ends; the stream of a kind that is followed is one request, and so
    // is a list by a watch.
    const requests = site.cluster
      .auditLines({ userAgent: 'skerry-agent', since: mark })
      .filter(({ stage, verb }) => stage === (verb === 'watch' ? 'ResponseStarted' : 'ResponseComplete'))
    const byVerb = new Map<string, number>()
    for (const { verb } of requests) byVerb.set(verb, (byVerb.get(verb) ?? 0) + 1)
    say(
      `calls in ${rounded(calledMs, 0)} ms, gone after ${rounded(tookMs, 0)} ms; requests: ${[...byVerb].map(([verb, n]) => `${n} ${verb}`).join(', ')}`,
    )
    return { remove_1000_requests: requests.length, remove_1000_ms: rounded(tookMs, 0), remove_1000_calls_ms: rounded(calledMs, 0) }
  } finally {
    await site.stop()
  }
}
