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

{{- /* Names of cluster-scoped objects contain the namespace, so that releases in two namespaces do not collide. */ -}}
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
The configuration from the values, with one profile if it contains none, and with leader election in
the namespace in which Berth may write its lease. Without permission to delete pods, no profile
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
{{- $_ := set $plugins "postFilter" (dict "disabled" (list (dict "name" "*")) "enabled" (list (dict "name" "DynamicResources"))) -}}
{{- $_ := set . "plugins" $plugins -}}
{{- end -}}
{{- end -}}
{{ toYaml $config }}
{{- end }}

{{- /* A schedulerName that Berth serves, for the notes and the test. */ -}}
{{- define "berth.servedName" -}}
{{- $first := first (default (list dict) .Values.config.profiles) -}}
{{- default .Values.schedulerName $first.schedulerName }}
{{- end }}

{{- /* Clients cannot verify the self-signed certificate. */ -}}
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

{{- /*
CEL: two objects are equal except for these keys. Arguments: the expressions of both objects, and the
keys. `dyn` turns a typed object into a map, so that any key of any version can be read.
*/ -}}
{{- define "berth.sameBut" -}}
{{- $new := printf "dyn(%s)" (index . 0) -}}
{{- $old := printf "dyn(%s)" (index . 1) -}}
{{- $keys := index . 2 | toJson | replace "\"" "'" -}}
{{ $new }}.all(key, key in {{ $keys }} || (key in {{ $old }} && {{ $new }}[key] == {{ $old }}[key])) &&
{{ $old }}.all(key, key in {{ $keys }} || key in {{ $new }})
{{- end }}

{{- /* The same for annotations, which may be absent. */ -}}
{{- define "berth.sameAnnotationsBut" -}}
{{- $new := "(has(object.metadata.annotations) ? object.metadata.annotations : {})" -}}
{{- $old := "(has(oldObject.metadata.annotations) ? oldObject.metadata.annotations : {})" -}}
{{ include "berth.sameBut" (list $new $old .) }}
{{- end }}

{{- /* CEL: the metadata are equal, except for annotations and the fields that every write changes. */ -}}
{{- define "berth.sameMetadata" -}}
{{ include "berth.sameBut" (list "object.metadata" "oldObject.metadata" (list "annotations" "managedFields" "resourceVersion" "generation")) }}
{{- end }}

{{- /* CEL: the finalizers other than the one of an allocated claim. */ -}}
{{- define "berth.finalizersBut" -}}
(has({{ . }}.finalizers) ? {{ . }}.finalizers : []).filter(each, each != 'resource.kubernetes.io/delete-protection')
{{- end }}

{{- /* CEL: the metadata are those of a claim for extended resources of a pod. */ -}}
{{- define "berth.isExtendedResourceClaim" -}}
has({{ . }}.annotations) &&
'resource.kubernetes.io/extended-resource-claim' in {{ . }}.annotations &&
has({{ . }}.ownerReferences) && {{ . }}.ownerReferences.all(each, each.kind == 'Pod')
{{- end }}

{{- /* An admission policy for Berth's requests, without its validations. Arguments: root, name, operation, group, versions, resource. */ -}}
{{- define "berth.guardFor" -}}
{{- $root := index . 0 -}}
{{- $name := printf "%s-%s" (include "berth.clusterName" $root) (index . 1) -}}
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: {{ $name }}
  labels:
    {{- include "berth.labels" $root | nindent 4 }}
spec:
  policyName: {{ $name }}
  validationActions: [Deny]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: {{ $name }}
  labels:
    {{- include "berth.labels" $root | nindent 4 }}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
      - apiGroups: [{{ index . 3 | quote }}]
        apiVersions: ["*"]
        operations: [{{ index . 2 }}]
        resources: [{{ index . 4 }}]
  matchConditions:
    - name: by-berth
      expression: >-
        request.userInfo.username ==
        'system:serviceaccount:{{ $root.Release.Namespace }}:{{ include "berth.serviceAccountName" $root }}'
{{- end }}
