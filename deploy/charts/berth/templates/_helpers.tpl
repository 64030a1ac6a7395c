{{- define "berth.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "berth.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- else if contains (include "berth.name" .) .Release.Name }}
{{- .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "berth.name" .) | trunc 63 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- /* Cluster-wide objects carry the namespace, so that releases in two of them do not collide. */ -}}
{{- define "berth.clusterName" -}}
{{- printf "%s-%s" .Release.Namespace (include "berth.fullname" .) }}
{{- end }}

{{- define "berth.selectorLabels" -}}
app.kubernetes.io/name: {{ include "berth.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "berth.labels" -}}
{{ include "berth.selectorLabels" . }}
app.kubernetes.io/component: scheduler
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "berth.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "berth.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- required "serviceAccount.name is needed when serviceAccount.create is false" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- define "berth.subject" -}}
- kind: ServiceAccount
  name: {{ include "berth.serviceAccountName" . }}
  namespace: {{ .Release.Namespace }}
{{- end }}

{{- define "berth.leaseName" -}}
{{- default (include "berth.fullname" .) .Values.leaderElection.leaseName }}
{{- end }}

{{- define "berth.configMapName" -}}
{{- default (include "berth.fullname" .) .Values.existingConfigMap }}
{{- end }}

{{- define "berth.image" -}}
{{- $image := .Values.image -}}
{{- if $image.digest -}}
{{ $image.repository }}@{{ $image.digest }}
{{- else -}}
{{ $image.repository }}:{{ default .Chart.AppVersion $image.tag }}
{{- end }}
{{- end }}

{{- /*
The configuration: what the value says, with one profile where it names none, and with the election
in the namespace in which berth may write its lease. Without the right to delete pods no profile
preempts.
*/ -}}
{{- define "berth.config" -}}
{{- $config := deepCopy .Values.config -}}
{{- $_ := set $config "apiVersion" "kubescheduler.config.k8s.io/v1" -}}
{{- $_ := set $config "kind" "KubeSchedulerConfiguration" -}}
{{- $election := .Values.leaderElection -}}
{{- if $election.enabled -}}
{{- $_ := set $config "leaderElection" (dict
    "leaderElect" true
    "resourceName" (include "berth.leaseName" .)
    "resourceNamespace" .Release.Namespace
    "leaseDuration" $election.leaseDuration
    "renewDeadline" $election.renewDeadline
    "retryPeriod" $election.retryPeriod) -}}
{{- else -}}
{{- $_ := set $config "leaderElection" (dict "leaderElect" false) -}}
{{- end -}}
{{- if not $config.profiles -}}
{{- $_ := set $config "profiles" (list (dict "schedulerName" .Values.schedulerName)) -}}
{{- end -}}
{{- if not .Values.rbac.preemption -}}
{{- range $config.profiles -}}
{{- $plugins := default dict .plugins -}}
{{- $_ := set $plugins "postFilter" (dict "disabled" (list (dict "name" "*"))) -}}
{{- $_ := set . "plugins" $plugins -}}
{{- end -}}
{{- end -}}
{{ toYaml $config }}
{{- end }}

{{- /* A name that pods can ask for, for the notes and the test. */ -}}
{{- define "berth.servedName" -}}
{{- $first := first (default (list dict) .Values.config.profiles) -}}
{{- default .Values.schedulerName $first.schedulerName }}
{{- end }}

{{- /* A certificate that berth made for itself can be verified by nobody. */ -}}
{{- define "berth.scrapeTls" -}}
tlsConfig:
  {{- if .Values.server.tls.secretName }}
  serverName: {{ printf "%s.%s.svc" (include "berth.fullname" .) .Release.Namespace }}
  ca:
    secret:
      name: {{ .Values.server.tls.secretName }}
      key: ca.crt
  {{- else }}
  insecureSkipVerify: true
  {{- end }}
{{- end }}
