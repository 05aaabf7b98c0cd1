{{- define "skerry.fullname" -}}
{{- if .Values.fullnameOverride }}{{ .Values.fullnameOverride | trunc 52 | trimSuffix "-" }}
{{- else if contains (default .Chart.Name .Values.nameOverride) .Release.Name }}{{ .Release.Name | trunc 52 | trimSuffix "-" }}
{{- else }}{{ printf "%s-%s" .Release.Name (default .Chart.Name .Values.nameOverride) | trunc 52 | trimSuffix "-" }}{{ end -}}
{{- end }}

{{- define "skerry.selector" -}}
app.kubernetes.io/name: skerry
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{- define "skerry.labels" -}}
{{ include "skerry.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/component: server
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "skerry.serviceAccount" -}}
{{ if .Values.serviceAccount.create }}{{ default (include "skerry.fullname" .) .Values.serviceAccount.name }}{{ else }}{{ default "default" .Values.serviceAccount.name }}{{ end }}
{{- end }}

{{- define "skerry.image" -}}
{{ .Values.image.repository }}{{ if .Values.image.digest }}@{{ .Values.image.digest }}{{ else }}:{{ default .Chart.AppVersion .Values.image.tag }}{{ end }}
{{- end }}

{{- define "skerry.tlsSecret" -}}
{{ if .Values.tls.existingSecret }}{{ .Values.tls.existingSecret }}{{ else if .Values.tls.certManager.enabled }}{{ include "skerry.fullname" . }}-tls{{ end }}
{{- end }}

{{- define "skerry.url" -}}
{{- $tls := include "skerry.tlsSecret" . -}}
{{ default (printf "%s://%s.%s.svc:%v" (ternary "https" "http" (ne $tls "")) (include "skerry.fullname" .) .Release.Namespace .Values.service.port) .Values.externalUrl }}
{{- end }}

{{- define "skerry.host" -}}
{{ (urlParse (include "skerry.url" .)).hostname }}
{{- end }}

{{- define "skerry.storeSecret" -}}
{{ if .Values.store.existingSecret }}{{ .Values.store.existingSecret }}{{ else if .Values.store.url }}{{ include "skerry.fullname" . }}-store{{ end }}
{{- end }}

{{- define "skerry.oidcSecret" -}}
{{ if .Values.oidc.existingSecret }}{{ .Values.oidc.existingSecret }}{{ else if .Values.oidc.config }}{{ include "skerry.fullname" . }}-oidc{{ end }}
{{- end }}

{{- /* Helm reads large numbers as floats: 1e+06 is no number for an option. */ -}}
{{- define "skerry.text" -}}
{{ if kindIs "float64" . }}{{ printf "%.0f" . }}{{ else }}{{ toString . }}{{ end }}
{{- end }}
