// Failure catalogue: webhooks that deny, are down or hang, and a conversion webhook that is dead. What they stop waits
// with their words, what they do not stop goes on.
import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test'
import { objectText } from '../../agent/messages/object-messages.ts'
import type { K8sObject } from '../../shared/kube/object.ts'
import { type CatalogueSite, startCatalogueSite } from '../support/catalogue-site.ts'
import { CLUSTER_START_TIMEOUT_MS } from '../support/kube-cluster.ts'
import { configMap } from '../support/reconcile-kit.ts'
import { SOME, said } from '../support/said.ts'
import { until } from '../support/watch-probe.ts'
import { startWebhookServer, type WebhookServer } from '../support/webhook-server.ts'

let site: CatalogueSite
let webhook: WebhookServer
beforeAll(async () => {
  site = await startCatalogueSite('webhooks', { extraApiServerFlags: ['--min-request-timeout=11'] })
  webhook = startWebhookServer()
}, CLUSTER_START_TIMEOUT_MS)
afterEach(async () => {
  await site.remove('validatingwebhookconfiguration', 'guard')
  webhook.open()
  webhook.hang(false)
  webhook.admit(() => null)
})
afterAll(async () => {
  await site.stop()
  await webhook.close()
}, CLUSTER_START_TIMEOUT_MS)

const HELD_KIND = 'Secret'
const held = (name: string, value = 'djE='): K8sObject =>
  ({ apiVersion: 'v1', kind: HELD_KIND, metadata: { name, namespace: 'default' }, data: { k: value } }) as K8sObject

/** Asked about every Secret; in force when this returns. */
async function guardSecrets(operations: readonly string[], timeoutSeconds = 10): Promise<void> {
  await site.apply({
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingWebhookConfiguration',
    metadata: { name: 'guard' },
    webhooks: [
      {
        name: 'guard.example.com',
        admissionReviewVersions: ['v1'],
        sideEffects: 'None',
        failurePolicy: 'Fail',
        timeoutSeconds,
        clientConfig: { url: webhook.url('/guard'), caBundle: webhook.caBundle },
        rules: [{ apiGroups: [''], apiVersions: ['v1'], resources: ['secrets'], operations }],
      },
    ],
  })
  const before = webhook.requests()
  const probe = { apiVersion: 'v1', kind: 'Secret', metadata: { name: `probe-${before}`, namespace: 'default' } }
  await until('the webhook is asked', async () => {
    await site.apply(probe)
    await site.server.kubectl(['delete', 'secret', `probe-${before}`, '-n', 'default'])
    return webhook.requests() > before
  })
}

test('RC8 KA29 a webhook denies: its words and what to do, the rest is applied, and it is tried again until it allows', async () => {
  const agent = await site.agent('denied')
  agent.start()
  agent.desire([configMap('denied-a'), held('denied-s')])
  await agent.well()
  await guardSecrets(['CREATE', 'UPDATE'])
  webhook.admit(({ name }) => (name.startsWith('denied') ? 'no secret is changed on a Friday' : null))
  agent.desire([configMap('denied-a', { a: '2' }), held('denied-s', 'djI='), held('denied-t')])
  await agent.says(
    /Secret default\/denied-s: admission webhook "guard.example.com" denied the request: no secret is changed on a Friday; .*retrying \(and 1 more\)/,
    'Forbidden',
  )
  expect((await site.live('configmap', 'denied-a'))?.['data']).toEqual({ a: '2' })
  expect((await site.live('secret', 'denied-s'))?.['data']).toEqual({ k: 'djE=' })
  webhook.admit(() => null)
  expect(await agent.well('it is well again')).toBeLessThan(20_000)
  expect((await site.live('secret', 'denied-s'))?.['data']).toEqual({ k: 'djI=' })
}, 120_000)

test.each(['is down', 'hangs'] as const)(
  'RC8 KA4 a webhook %s: writes of its kind wait, deletes too, nothing is forgotten, and it is well when the webhook answers',
  async (fault) => {
    const name = fault === 'hangs' ? 'hung' : 'down'
    const agent = await site.agent(name)
    agent.start()
    agent.desire([configMap(`${name}-a`), held(`${name}-s`), held(`${name}-u`)])
    await agent.well()
    await guardSecrets(['CREATE', 'UPDATE', 'DELETE'], 1)
    const mark = site.server.auditMark()
    if (fault === 'hangs') webhook.hang(true)
    else await webhook.close()
    agent.desire([configMap(`${name}-a`, { a: '2' }), held(`${name}-s`, 'djI=')])
    await agent.says(
      said(
        `Secret default/${SOME}-s: ${objectText('WebhookUnavailable', { failure: `${SOME}failed calling webhook "guard.example.com"${SOME}` })}`,
      ),
      'WebhookUnavailable',
    )
    expect((await site.live('configmap', `${name}-a`))?.['data']).toEqual({ a: '2' })
    expect(agent.inventory()).toEqual([`ConfigMap/${name}-a`, `Secret/${name}-s`, `Secret/${name}-u`])
    expect(agent.deletes(mark)).toEqual([])
    webhook.open()
    webhook.hang(false)
    expect(await agent.well('it is well again')).toBeLessThan(30_000)
    expect(agent.inventory()).toEqual([`ConfigMap/${name}-a`, `Secret/${name}-s`])
    expect(await site.live('secret', `${name}-u`)).toBeNull()
  },
  120_000,
)

test('RC8 IV2 a webhook that is down holds a prune: the object stays in the inventory, and the message says what holds it', async () => {
  const agent = await site.agent('heldprune')
  agent.start()
  agent.desire([configMap('heldprune-a'), held('heldprune-u')])
  await agent.well()
  await guardSecrets(['DELETE'], 1).catch(() => {})
  await webhook.close()
  agent.desire([configMap('heldprune-a')])
  await agent.says(/failed calling webhook "guard.example.com"/)
  expect(agent.inventory()).toEqual(['ConfigMap/heldprune-a', 'Secret/heldprune-u'])
  webhook.open()
  expect(await agent.well('it is well again')).toBeLessThan(30_000)
  expect([agent.inventory(), await site.live('secret', 'heldprune-u')]).toEqual([['ConfigMap/heldprune-a'], null])
}, 120_000)

const BOATS = 'boats.sea.example'
/** Stored as v1, applied as v2: every read of it needs the webhook. */
const boatDefinition = () => ({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: BOATS },
  spec: {
    group: 'sea.example',
    scope: 'Namespaced',
    names: { plural: 'boats', singular: 'boat', kind: 'Boat', listKind: 'BoatList' },
    conversion: {
      strategy: 'Webhook',
      webhook: { conversionReviewVersions: ['v1'], clientConfig: { url: webhook.url('/convert'), caBundle: webhook.caBundle } },
    },
    versions: ['v1', 'v2'].map((name) => ({
      name,
      served: true,
      storage: name === 'v1',
      schema: {
        openAPIV3Schema: { type: 'object', properties: { spec: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } } },
      },
    })),
  },
})
const boat = (name: string, oars = 2): K8sObject =>
  ({ apiVersion: 'sea.example/v2', kind: 'Boat', metadata: { name, namespace: 'default' }, spec: { oars } }) as K8sObject

test('RC5 IV5 a conversion webhook is dead: its kind is unknown and not absent, nothing of it is deleted or forgotten', async () => {
  await site.apply(boatDefinition())
  await site.server.kubectl(['wait', '--for=condition=Established', `crd/${BOATS}`, '--timeout=20s'])
  const agent = await site.agent('boats')
  agent.start()
  agent.desire([configMap('boats-a'), boat('skiff'), boat('raft')])
  await agent.well()
  const mark = site.server.auditMark()
  await webhook.close()
  agent.desire([configMap('boats-a', { a: '2' }), boat('skiff', 4)])
  await agent.says(
    said(`Boat default/skiff: ${objectText('WebhookUnavailable', { failure: `conversion webhook for sea.example${SOME} failed${SOME}` })}`),
    'WebhookUnavailable',
  )
  // The API server's cache goes on, since nothing in it has to be converted; one that starts cannot fill it.
  await site.server.restartApiServer()
  await agent.says(
    said(`Boat default/raft: ${objectText('NotWatched.failed', { failure: `${SOME}conversion webhook${SOME}`, next: SOME })}`),
    'NotWatched',
  )
  await site.remove('configmap', 'boats-a')
  await until('the healed ConfigMap', () => site.live('configmap', 'boats-a'))
  expect(agent.inventory()).toEqual(['Boat/raft', 'Boat/skiff', 'ConfigMap/boats-a'])
  expect(agent.deletes(mark)).toEqual([])
  webhook.open()
  // 30 s is the longest wait of a watch.
  expect(await agent.well('it is well again')).toBeLessThan(40_000)
  expect(agent.inventory()).toEqual(['Boat/skiff', 'ConfigMap/boats-a'])
  expect(agent.deletes(mark)).toEqual(['boats/raft'])
  expect((await site.live(BOATS, 'skiff'))?.['spec']).toEqual({ oars: 4 })
}, 120_000)
