{{- define "skerry-agent.fullname" -}}
{{- if .Values.fullnameOverride }}{{ .Values.fullnameOverride | trunc 52 | trimSuffix "-" }}
{{- else if contains (default .Chart.Name .Values.nameOverride) .Release.Name }}{{ .Release.Name | trunc 52 | trimSuffix "-" }}
{{- else }}{{ printf "%s-%s" .Release.Name (default .Chart.Name .Values.nameOverride) | trunc 52 | trimSuffix "-" }}{{ end -}}
{{- end }}

{{- define "skerry-agent.selector" -}}
app.kubernetes.io/name: skerry-agent
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{- define "skerry-agent.labels" -}}
{{ include "skerry-agent.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/component: agent
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "skerry-agent.serviceAccount" -}}
{{ if .Values.serviceAccount.create }}{{ default (include "skerry-agent.fullname" .) .Values.serviceAccount.name }}{{ else }}{{ default "default" .Values.serviceAccount.name }}{{ end }}
{{- end }}

{{- define "skerry-agent.image" -}}
{{ .Values.image.repository }}{{ if .Values.image.digest }}@{{ .Values.image.digest }}{{ else }}:{{ default .Chart.AppVersion .Values.image.tag }}{{ end }}
{{- end }}

{{- /* Helm reads large numbers as floats: 1e+06 is no number for an option. */ -}}
{{- define "skerry-agent.text" -}}
{{ if kindIs "float64" . }}{{ printf "%.0f" . }}{{ else }}{{ toString . }}{{ end }}
{{- end }}
{{/* YAML reads a bare `off` as false. */}}
{{- define "skerry-agent.asking" -}}
{{- if .Values.asking }}{{ .Values.asking }}{{ else }}off{{ end }}
{{- end }}
