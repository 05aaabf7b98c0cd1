// The cost of rendering a chart besides `helm template` alone: thirty templates of one Deployment each.
import type { Sandbox } from '../../server/render/sandbox.ts'
import { measureCost, type RenderCost } from './render-cost.ts'

const TEMPLATES = 30

const HELPERS = `{{- define "web.name" -}}{{ default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}{{- end }}
{{- define "web.labels" -}}
app.kubernetes.io/name: {{ include "web.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
`
const template = (number: number): string => `{{- if .Capabilities.APIVersions.Has "apps/v1" }}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ include "web.name" . }}-${number}
  labels: {{- include "web.labels" . | nindent 4 }}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: web-${number}}}
  template:
    metadata: {labels: {app: web-${number}}}
    spec:
      containers:
        - name: web
          image: "{{ .Values.image }}:{{ .Values.tag }}"
          resources: {{- toYaml .Values.resources | nindent 12 }}
{{- end }}
`
const FILES: ReadonlyMap<string, string> = new Map([
  ['chart/Chart.yaml', 'apiVersion: v2\nname: web\nversion: 1.0.0\n'],
  ['chart/values.yaml', 'replicas: 2\nimage: example/web\ntag: "1"\nresources: {requests: {cpu: 100m, memory: 64Mi}}\n'],
  ['chart/templates/_helpers.tpl', HELPERS],
  ...Array.from({ length: TEMPLATES }, (_, number) => [`chart/templates/web-${number}.yaml`, template(number)] as const),
  ['values.json', '{"tag":"2"}'],
])

const ARGS = [
  'template',
  'web',
  'chart',
  '--values=values.json',
  '--skip-tests',
  '--include-crds',
  '--namespace=web',
  '--api-versions=apps/v1',
]

export const measureHelm = (sandbox: Sandbox, program: string, folder: string, nowMs: () => number): Promise<RenderCost> =>
  measureCost(
    sandbox,
    folder,
    { ...{ files: FILES, program, args: ARGS, cwd: '' }, root: 'chart', spec: { helm: { values: { tag: '2' } } }, objects: TEMPLATES },
    nowMs,
  )
