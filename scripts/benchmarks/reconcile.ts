// The work of the agent in a cluster, its speed, and its cost: `scripts/bench reconcile`. Each part has a cluster, a
// server and an agent of its own. SKERRY_BENCH_APPS=100, SKERRY_BENCH_IDLE_S=60, SKERRY_BENCH_CHURN_S=300: shorter runs
// during development
import { runParts, type Say } from './parts.ts'
import { appsReady, appsRequests } from './reconcile-apps.ts'
import { bulk, churn } from './reconcile-bulk.ts'
import { drift } from './reconcile-drift.ts'
import { order } from './reconcile-order.ts'
import { remove } from './reconcile-remove.ts'
import { slowWebhookPart } from './reconcile-slow-webhook.ts'

const PARTS = { apps: appsReady, requests: appsRequests, remove, drift, order, bulk, 'slow-webhook': slowWebhookPart, churn }

export const benchReconcile = (say: Say, only: string | null): Promise<Record<string, number>> => runParts('reconcile', PARTS, say, only)
