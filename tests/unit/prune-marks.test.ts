// What other tools' annotations and labels say about an object: who has it, whether it may be deleted, and what holds
// one that is going.
import { describe, expect, test } from 'bun:test'
import { liveObjectOf } from '../../agent/reconcile/snapshot/watch/live-object.ts'
import { deletionText, stuckAdvice } from '../../shared/kube/deletion.ts'
import { otherOwner, takeoverWarning } from '../../shared/kube/foreign-owners.ts'
import { keepMark, keepsFrom } from '../../shared/kube/keep-marks.ts'
import { type K8sObject, refOf } from '../../shared/kube/object.ts'

const object = (metadata: Partial<K8sObject['metadata']>, kind = 'ConfigMap', rest = {}): K8sObject => ({
  apiVersion: 'v1',
  kind,
  metadata: { name: 'a', namespace: kind === 'Namespace' ? undefined : 'web', uid: 'u', ...metadata } as K8sObject['metadata'],
  ...rest,
})

describe('keep marks', () => {
  test.each([
    ['skerry.dev/prune', 'disabled', 'always'],
    ['skerry.dev/prune', 'allowed', 'never'],
    ['argocd.argoproj.io/sync-options', 'Prune=false', 'always'],
    ['argocd.argoproj.io/sync-options', 'Replace=true, Prune=false', 'always'],
    ['argocd.argoproj.io/sync-options', 'Prune=true', 'never'],
    ['argocd.argoproj.io/sync-options', 'Delete=false', 'removal'],
    ['argocd.argoproj.io/sync-options', 'Delete=false,Prune=false', 'always'],
    ['argocd.argoproj.io/sync-options', 'SkipPrune=false', 'never'],
    ['deployment.plural.sh/sync-options', 'prune=False', 'always'],
    ['deployment.plural.sh/sync-options', 'delete=false', 'removal'],
    ['kustomize.toolkit.fluxcd.io/prune', 'disabled', 'always'],
    ['kustomize.toolkit.fluxcd.io/prune', 'Disabled', 'never'],
    ['helm.sh/resource-policy', 'keep', 'always'],
    ['helm.sh/resource-policy', ' Keep ', 'always'],
    ['helm.sh/resource-policy', 'delete', 'never'],
    ['cli-utils.sigs.k8s.io/on-remove', 'keep', 'always'],
    ['cli-utils.sigs.k8s.io/on-remove', 'drop', 'never'],
    ['client.lifecycle.config.k8s.io/deletion', 'detach', 'always'],
    ['client.lifecycle.config.k8s.io/deletion', 'any', 'never'],
  ] as const)('IV4 %s: %s keeps it %s', (key, value, when) => {
    const { keep } = liveObjectOf(object({ annotations: { 'example.com/x': 'y', [key]: value } }), 0)
    expect({ prune: keepsFrom('prune', keep), removal: keepsFrom('removal', keep) }).toEqual({
      prune: when === 'always',
      removal: when !== 'never',
    })
  })
  test('IV4 what keeps always speaks before what keeps in a removal', () =>
    expect(keepsFrom('prune', keepMark({ 'argocd.argoproj.io/sync-options': 'Delete=false', 'helm.sh/resource-policy': 'keep' }))).toBe(
      true,
    ))
})

describe('marks of other owners', () => {
  const cases: Array<[string, 'labels' | 'annotations', Record<string, string>, string | null]> = [
    ['Argo CD', 'annotations', { 'argocd.argoproj.io/tracking-id': 'shop:/ConfigMap:web/a' }, 'Argo CD'],
    ['Argo CD of some other form', 'annotations', { 'argocd.argoproj.io/tracking-id': 'shop' }, 'Argo CD'],
    ['Argo CD, copied from another object', 'annotations', { 'argocd.argoproj.io/tracking-id': 'shop:apps/Deployment:web/b' }, null],
    ['Argo CD by label', 'labels', { 'argocd.argoproj.io/instance': 'shop' }, 'Argo CD'],
    ['Flux', 'labels', { 'kustomize.toolkit.fluxcd.io/name': 'shop' }, 'Flux'],
    ['Flux’s Helm', 'labels', { 'helm.toolkit.fluxcd.io/name': 'shop' }, 'Flux'],
    ['Helm', 'annotations', { 'meta.helm.sh/release-name': 'shop' }, 'Helm'],
    ['Fleet', 'annotations', { 'objectset.rio.cattle.io/id': 'x' }, 'Fleet'],
    [
      'Plural',
      'annotations',
      { 'config.k8s.io/owning-inventory': 'i', 'config.k8s.io/tracking-identifier': '/v1/ConfigMap/web/a' },
      'Plural',
    ],
    [
      'Plural, copied from another object',
      'annotations',
      { 'config.k8s.io/owning-inventory': 'i', 'config.k8s.io/tracking-identifier': 'apps/v1/Deployment/web/a' },
      null,
    ],
    ['kpt', 'annotations', { 'config.k8s.io/owning-inventory': 'i' }, 'kpt'],
    ['kapp', 'labels', { 'kapp.k14s.io/app': '1' }, 'kapp'],
    ['an ApplySet', 'labels', { 'applyset.kubernetes.io/part-of': 'x' }, 'kubectl ApplySet'],
    ['managed-by alone', 'labels', { 'app.kubernetes.io/managed-by': 'Helm', 'app.kubernetes.io/instance': 'shop' }, null],
    ['an empty mark', 'labels', { 'kustomize.toolkit.fluxcd.io/name': '' }, null],
  ]
  test.each(cases)('RC3 %s', (_, place, marks, owner) => {
    const marked = object({ [place]: marks })
    const said = otherOwner(marked.metadata, refOf(marked))
    expect(said?.split(' (')[0] ?? null).toBe(owner)
    expect(takeoverWarning(marked.metadata, refOf(marked)) === null).toBe(owner === null)
  })
  test('RC3 the warning of a takeover says what the other tool will do', () => {
    const marked = object({ labels: { 'argocd.argoproj.io/instance': 'shop' } })
    expect(takeoverWarning(marked.metadata, refOf(marked))).toBe(
      'the mark of Argo CD stays on the object (argocd.argoproj.io/instance): it deletes the object when its Application no longer has it: remove the object from the Application with prune disabled, or delete the mark',
    )
  })
})

describe('what holds an object that is going', () => {
  const deletionTimestamp = '2026-01-01T00:00:00Z'
  test('PR9 a Namespace says what is left in it and which API group answers nothing', () => {
    const conditions = [
      {
        type: 'NamespaceFinalizersRemaining',
        status: 'True',
        message: 'Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances',
      },
      {
        type: 'NamespaceDeletionDiscoveryFailure',
        status: 'True',
        message: 'Discovery failed for some groups, 1 failing: metrics.k8s.io/v1beta1: stale GroupVersion discovery',
      },
      { type: 'NamespaceDeletionContentFailure', status: 'False', message: 'All content successfully deleted' },
    ]
    const text = deletionText(object({ deletionTimestamp }, 'Namespace', { status: { phase: 'Terminating', conditions } }))
    expect(text).toBe(
      'it is being deleted; Discovery failed for some groups, 1 failing: metrics.k8s.io/v1beta1: stale GroupVersion discovery; Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances',
    )
    expect(stuckAdvice('Namespace', text ?? '')).toContain('APIService')
  })
  test.each([
    ['PersistentVolumeClaim', ['kubernetes.io/pvc-protection'], 'delete that Pod'],
    ['CustomResourceDefinition', ['customresourcecleanup.apiextensions.k8s.io'], 'custom resources of the kind remain'],
    ['ConfigMap', ['example.com/hold'], 'kubectl edit'],
    ['Deployment', ['foregroundDeletion'], 'dependents'],
    ['Pod', [], 'kube-controller-manager'],
  ])('PR9 a %s held by %p', (kind, finalizers, advice) => {
    const text = deletionText(object({ deletionTimestamp, finalizers }, kind))
    for (const finalizer of finalizers) expect(text).toContain(finalizer)
    expect(stuckAdvice(kind, text ?? '')).toContain(advice)
  })
})
