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

{{- /* The name of an object that each pool has; without pools there is one. */ -}}
{{- define "berth.poolName" -}}
{{- $pool := default dict .pool -}}
{{ include "berth.fullname" . }}{{ with $pool.name }}-{{ . }}{{ end }}
{{- end }}

{{- define "berth.poolSelectorLabels" -}}
{{ include "berth.selectorLabels" . }}
{{- with (default dict .pool).name }}
scheduling.berth.dev/pool: {{ . }}
{{- end }}
{{- end }}

{{- define "berth.poolLabels" -}}
{{ include "berth.labels" . }}
{{- with (default dict .pool).name }}
scheduling.berth.dev/pool: {{ . }}
{{- end }}
{{- end }}

{{- /* A template for each pool, with the pool as .pool; without pools once. Arguments: root, template. */ -}}
{{- define "berth.forEachPool" -}}
{{- $root := index . 0 -}}
{{- $template := index . 1 -}}
{{- range $index, $pool := default (list dict) $root.Values.pools }}
{{- if $index }}
---
{{ end }}
{{- include $template (dict "Values" $root.Values "Release" $root.Release "Chart" $root.Chart "pool" $pool) }}
{{- end }}
{{- end }}

{{- /* The schedulerNames that a pool serves, as JSON. */ -}}
{{- define "berth.schedulerNames" -}}
{{- $names := list -}}
{{- range default (list (dict "schedulerName" .Values.schedulerName)) .Values.config.profiles -}}
{{- $names = append $names .schedulerName -}}
{{- end -}}
{{ default $names .pool.schedulerNames | toJson }}
{{- end }}

{{- /* Fails where two pools could have a node in common, or one name. */ -}}
{{- define "berth.checkPools" -}}
{{- $pools := .Values.pools -}}
{{- if and $pools .Values.existingConfigMap -}}
{{- fail "existingConfigMap: each of the pools has a configuration with a Lease of its own; use config" -}}
{{- end -}}
{{- if and $pools (not .Values.leaderElection.enabled) -}}
{{- fail "leaderElection.enabled: pools need Leases" -}}
{{- end -}}
{{- range $index, $pool := $pools -}}
{{- range $before := until $index -}}
{{- $other := index $pools $before -}}
{{- if eq $pool.name $other.name -}}
{{- fail (printf "pools[%d].name: pools[%d] is %q already" $index $before $pool.name) -}}
{{- end -}}
{{- $disjoint := dict -}}
{{- range $label, $values := $pool.nodeSelector -}}
{{- if hasKey $other.nodeSelector $label -}}
{{- $common := dict -}}
{{- range $value := ternary $values (list $values) (kindIs "slice" $values) -}}
{{- $others := get $other.nodeSelector $label -}}
{{- if has $value (ternary $others (list $others) (kindIs "slice" $others)) -}}
{{- $_ := set $common "value" $value -}}
{{- end -}}
{{- end -}}
{{- if not $common -}}
{{- $_ := set $disjoint "label" $label -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if not $disjoint -}}
{{- fail (printf "pools[%d].nodeSelector: a node could also be in the pool %q (pools[%d]); of some label both need values, and none in common" $index $other.name $before) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end }}

{{- /* A pool's nodes, as a flag has them. */ -}}
{{- define "berth.nodeSelector" -}}
{{- $selector := .pool.nodeSelector -}}
{{- range $index, $label := keys $selector | sortAlpha -}}
{{- $values := get $selector $label -}}
{{- if $index }},{{ end -}}
{{- if kindIs "slice" $values }}{{ $label }} in ({{ join "," $values }}){{ else }}{{ $label }}={{ $values }}{{ end -}}
{{- end -}}
{{- end }}

{{- /* All pools, as berth reads them. */ -}}
{{- define "berth.poolConfiguration" -}}
{{- $root := . -}}
{{- $pools := list -}}
{{- range .Values.pools -}}
{{- $context := dict "Values" $root.Values "Release" $root.Release "Chart" $root.Chart "pool" . -}}
{{- $pool := dict "name" .name "nodeSelector" (include "berth.nodeSelector" $context) "schedulerNames" (include "berth.schedulerNames" $context | fromJsonArray) "leaseName" (include "berth.leaseName" $context) -}}
{{- with .topologyKeys -}}
{{- $_ := set $pool "topologyKeys" . -}}
{{- end -}}
{{- $pools = append $pools $pool -}}
{{- end -}}
apiVersion: scheduling.berth.dev/v1alpha1
kind: PoolConfiguration
handOverAfter: {{ .Values.poolHandOverAfter }}
pools:
  {{- toYaml $pools | nindent 2 }}
{{- end }}

{{- define "berth.leaseName" -}}
{{- $pool := default dict .pool -}}
{{- default (include "berth.fullname" .) .Values.leaderElection.leaseName }}{{ with $pool.name }}-{{ . }}{{ end }}
{{- end }}

{{- /* The names of all Leases, for roles. */ -}}
{{- define "berth.leaseNames" -}}
{{- $root := . -}}
{{- $names := list -}}
{{- range $pool := default (list dict) .Values.pools -}}
{{- $names = append $names (include "berth.leaseName" (dict "Values" $root.Values "Release" $root.Release "Chart" $root.Chart "pool" $pool) | quote) -}}
{{- end -}}
{{ join ", " $names }}
{{- end }}

{{- define "berth.configMapName" -}}
{{- default (include "berth.poolName" .) .Values.existingConfigMap }}
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
{{- with (default dict .pool).schedulerNames -}}
{{- $known := dict -}}
{{- range $config.profiles -}}
{{- $_ := set $known .schedulerName . -}}
{{- end -}}
{{- $profiles := list -}}
{{- range . -}}
{{- $profiles = append $profiles (default (dict "schedulerName" .) (get $known .)) -}}
{{- end -}}
{{- $_ := set $config "profiles" $profiles -}}
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
{{- $pool := first (default (list dict) .Values.pools) -}}
{{- default (default .Values.schedulerName $first.schedulerName) (first (default list $pool.schedulerNames)) }}
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

{{- /* The name of a replica's pool as a label of all its metrics, besides the values' relabelings. */ -}}
{{- define "berth.relabelings" -}}
{{- $root := index . 0 -}}
{{- $own := list -}}
{{- if $root.Values.pools -}}
{{- $own = list (dict "sourceLabels" (list "__meta_kubernetes_pod_label_scheduling_berth_dev_pool") "targetLabel" "node_pool") -}}
{{- end -}}
{{- with concat $own (index . 1) }}
relabelings:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
