// The cost of rendering a kustomization besides `kustomize build` alone: an overlay of a base with twenty Deployments,
// a generator, patches and images.
import type { Sandbox } from '../../server/render/sandbox.ts'
import { measureCost, type RenderCost } from './render-cost.ts'

const DEPLOYMENTS = 20

const deployment = (number: number): string => `apiVersion: apps/v1
kind: Deployment
metadata: {name: web-${number}}
spec:
  selector: {matchLabels: {app: web-${number}}}
  template:
    metadata: {labels: {app: web-${number}}}
    spec:
      containers:
        - {name: web, image: "example/web:1", envFrom: [{configMapRef: {name: settings}}]}
`
const NUMBERS = Array.from({ length: DEPLOYMENTS }, (_, number) => number)
const FILES: ReadonlyMap<string, string> = new Map([
  [
    'base/kustomization.yaml',
    `resources: [${NUMBERS.map((number) => `web-${number}.yaml`).join(', ')}]\nconfigMapGenerator: [{name: settings, literals: [a=b]}]\n`,
  ],
  ...NUMBERS.map((number) => [`base/web-${number}.yaml`, deployment(number)] as const),
  [
    'prod/kustomization.yaml',
    'resources: [../base]\nnamePrefix: prod-\nimages: [{name: example/web, newTag: "2"}]\nreplicas: [{name: web-0, count: 3}]\npatches: [{path: patch.yaml, target: {kind: Deployment}}]\n',
  ],
  ['prod/patch.yaml', '- {op: add, path: /metadata/labels, value: {env: prod}}\n'],
])

export const measureKustomize = (sandbox: Sandbox, program: string, folder: string, nowMs: () => number): Promise<RenderCost> =>
  measureCost(
    sandbox,
    folder,
    { ...{ files: FILES, program, args: ['build', '.'], cwd: 'prod' }, root: 'prod', spec: {}, objects: DEPLOYMENTS + 1 },
    nowMs,
  )
