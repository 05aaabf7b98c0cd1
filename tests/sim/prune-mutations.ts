// Ways to delete what nobody meant to be deleted, each a change of source text that a real mistake could make. The text
// is replaced while it is loaded, nothing on the disk changes. `firstSeed`: rare ones are looked for near the first
// life that meets them.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

export const PRUNE_MUTATIONS = {
  'a hand-over is not waited for': {
    file: 'agent/reconcile/plan/prune/handover.ts',
    from: '    if (waits !== null) return waits\n',
    to: "    if (waits === 'never') return waits\n",
  },
  'the taker’s old revision counts as its answer': {
    file: 'agent/reconcile/plan/prune/handover.ts',
    from: "taker.kind === 'read' && taker.digest === after",
    to: "taker.kind === 'read' && taker.digest === 'never'",
  },
  'the guard’s refusal is not heeded': {
    file: 'agent/reconcile/plan/prune/deletion.ts',
    from: '  if (why !== null)\n',
    to: "  if (why === 'never')\n",
  },
  'keep marks are not read': {
    file: 'agent/reconcile/plan/prune/prune-plan.ts',
    from: ': isKept(live, applied, ref, removal)\n',
    to: ": isKept(live, applied, ref, removal) && ref.name === 'never'\n",
  },
  'an older disk is believed': {
    file: 'agent/reconcile/plan/prune/prune-guard.ts',
    from: '  !isCurrent() && !isConfirmedHere(model)',
    to: "  !isCurrent() && model.key === 'never'",
  },
  'health is not waited for': {
    file: 'agent/reconcile/plan/prune/prune-wait.ts',
    from: "    if (pruneWhen === 'applied') continue\n",
    to: "    if (pruneWhen !== 'never') continue\n",
  },
  'an object of the same name is taken for ours': {
    file: 'agent/reconcile/plan/prune/prune-plan.ts',
    from: ' : !appliedByUs || wasLetGo(live)) return forget',
    to: " : ref.name === 'never') return forget",
    firstSeed: 220,
  },
  'what somebody has just changed is deleted': {
    file: 'agent/reconcile/apply/execute.ts',
    from: '{ ...options, resourceVersion })',
    to: '{ ...options, resourceVersion: resourceVersion && undefined })',
    firstSeed: 380,
  },
  'what another service names is pruned': {
    file: 'agent/reconcile/apply/prune-rounds.ts',
    from: 'wantedElsewhere: (key) => deps.othersWanting(model, key).length > 0',
    to: 'wantedElsewhere: (key) => deps.othersWanting(model, key).length > 99',
  },
  'the guard counts only the first of what would go': {
    file: 'agent/reconcile/plan/prune/deletion.ts',
    from: 'whyGuarded({ ...guard, prune: doomed,',
    to: 'whyGuarded({ ...guard, prune: doomed.slice(0, 5),',
    firstSeed: 70,
  },
  'a person’s yes is good for ever': {
    file: 'agent/reconcile/plan/gates/confirmation.ts',
    from: '  confirmation !== null && confirmation.digest !== confirmationToken(row)\n',
    to: "  confirmation?.digest === 'never' && confirmation.digest !== confirmationToken(row)\n",
    firstSeed: 160,
  },
  'data is deleted without its name': {
    file: 'agent/reconcile/plan/prune/deletion.ts',
    from: "if (holding.kind === 'nothing' || isOpen(candidate))",
    to: "if (holding.kind !== 'unseen' || isOpen(candidate))",
  },
  'nobody looks into what goes with others in it': {
    file: 'agent/reconcile/plan/prune/deletion.ts',
    from: "contents === null ? { kind: 'unseen' } : holdingOfContents(contents)",
    to: 'contents === null ? NOTHING : holdingOfContents(contents)',
  },
  'a yes to the revision is a yes to every name': {
    file: 'agent/reconcile/plan/prune/deletion.ts',
    from: 'allowed || isIn(confirmed, ref)\n',
    to: 'allowed || request.isConfirmed || isIn(confirmed, ref)\n',
  },
} as const
export type PruneMutation = keyof typeof PRUNE_MUTATIONS

const name = process.env['SKERRY_PRUNE_MUTATION'] as PruneMutation | undefined
if (name !== undefined && name in PRUNE_MUTATIONS) {
  const { file, from, to } = PRUNE_MUTATIONS[name]
  const path = join(import.meta.dir, '../..', file)
  const contents = readFileSync(path, 'utf8')
  if (contents.split(from).length !== 2) throw new Error(`${file} no longer holds this text exactly once: ${from}`)
  const filter = new RegExp(`${file.replaceAll('.', '\\.')}$`)
  Bun.plugin({
    name: 'mutation',
    setup: (build) => void build.onLoad({ filter }, () => ({ contents: contents.replace(from, () => to), loader: 'ts' })),
  })
}
