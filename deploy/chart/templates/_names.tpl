{{- define "watchfire.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 52 | trimAll "-" }}
{{- end }}

{{/* At most 52 characters: the StatefulSet's controller appends a hash of 10 to a label that may have 63. */}}
{{- define "watchfire.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride }}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 52 | trimAll "-" }}
{{- else if contains $name .Release.Name }}
{{- .Release.Name | trunc 52 | trimAll "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 52 | trimAll "-" }}
{{- end }}
{{- end }}

{{- define "watchfire.namespace" -}}
{{- default .Release.Namespace .Values.namespaceOverride }}
{{- end }}

{{- define "watchfire.account" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "watchfire.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- required "serviceAccount.name is needed where serviceAccount.create is false" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{/* The account of the job that takes backups. No function has it: their names have no dot. */}}
{{- define "watchfire.backupAccount" -}}
{{- include "watchfire.account" . }}.backup
{{- end }}

{{- define "watchfire.selector" -}}
app.kubernetes.io/name: {{ include "watchfire.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{- define "watchfire.labels" -}}
{{- include "watchfire.labelsAnd" (list . dict) }}
{{- end }}

{{/* Of (list $ LABELS): the chart's own before LABELS, and those before the labels of every object. */}}
{{- define "watchfire.labelsAnd" -}}
{{- with first . }}
{{- $own := dict
  "app.kubernetes.io/name" (include "watchfire.name" .)
  "app.kubernetes.io/instance" .Release.Name
  "app.kubernetes.io/version" .Chart.AppVersion
  "app.kubernetes.io/managed-by" .Release.Service
  "helm.sh/chart" (printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_") }}
{{- toYaml (merge $own (default dict (last $)) (default dict .Values.commonLabels)) }}
{{- end }}
{{- end }}

{{/* The field `annotations`, of (list $ ANNOTATIONS): those before the annotations of every object. Empty where there are none. */}}
{{- define "watchfire.annotations" -}}
{{- with merge (dict) (default dict (last .)) (default dict (first .).Values.commonAnnotations) }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* A text that may have been given as a number: in a file of values that is a float, which would be written as 2e+07. */}}
{{- define "watchfire.text" -}}
{{- if kindIs "float64" . }}{{ eq . (floor .) | ternary (int64 . | toString) (toString .) }}{{ else }}{{ toString . }}{{ end }}
{{- end }}

{{/* An amount of Kubernetes' form as a plain number, to be compared. */}}
{{- define "watchfire.number" -}}
{{- $text := include "watchfire.text" . }}
{{- $digits := regexFind "^[0-9.]+([eE][-+]?[0-9]+)?" $text }}
{{- $factors := dict "" 1 "n" 1e-9 "u" 1e-6 "m" 1e-3 "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "P" 1e15 "E" 1e18 }}
{{- $binary := 1 }}
{{- range list "Ki" "Mi" "Gi" "Ti" "Pi" "Ei" }}
{{- $binary = mul $binary 1024 }}
{{- $_ := set $factors . $binary }}
{{- end }}
{{- mulf (float64 $digits) (get $factors (trimPrefix $digits $text)) }}
{{- end }}

{{/*
Which other release has the definition of Function, as `NAME in NAMESPACE`. Empty where none has, and where Helm sees no cluster. Helm lets one
release alone have an object, and this one outlives its release.
*/}}
{{- define "watchfire.definer" -}}
{{- $crd := lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" "functions.watchfire.dev" | default dict }}
{{- $annotations := dig "metadata" "annotations" dict $crd }}
{{- with get $annotations "meta.helm.sh/release-name" }}
{{- $definer := printf "%s in %s" . (get $annotations "meta.helm.sh/release-namespace") }}
{{- if ne $definer (printf "%s in %s" $.Release.Name $.Release.Namespace) }}{{ $definer }}{{ end }}
{{- end }}
{{- end }}

{{/* The tag 0 is one. */}}
{{- define "watchfire.tag" -}}
{{- $tag := .Values.image.tag }}
{{- if or (kindIs "invalid" $tag) (eq (toString $tag) "") }}{{ .Chart.AppVersion }}{{ else }}{{ include "watchfire.text" $tag }}{{ end }}
{{- end }}

{{/* A parent chart's `global.imageRegistry` takes the place of the registry that the repository begins with. */}}
{{- define "watchfire.repository" -}}
{{- $path := .Values.image.repository }}
{{- with (.Values.global).imageRegistry }}
{{- printf "%s/%s" (trimSuffix "/" .) (regexReplaceAll "^([^/]*[.:][^/]*|localhost)/" $path "") }}
{{- else }}
{{- $path }}
{{- end }}
{{- end }}

{{- define "watchfire.image" -}}
{{- if .Values.image.digest }}
{{- printf "%s@%s" (include "watchfire.repository" .) .Values.image.digest }}
{{- else }}
{{- printf "%s:%s" (include "watchfire.repository" .) (include "watchfire.tag" .) }}
{{- end }}
{{- end }}

{{/* A probe, of (list NAME PROBE OVERRIDES): the user's fields before the chart's. How it asks is the chart's. */}}
{{- define "watchfire.probe" -}}
{{ first . }}:
  {{- toYaml (merge (dict) (default dict (last .)) (index . 1)) | nindent 2 }}
{{- end }}

{{- define "watchfire.store" -}}
{{- if eq .Values.store.type "auto" }}
{{- gt (int .Values.replicas) 1 | ternary "kubernetes" "sqlite" }}
{{- else }}
{{- .Values.store.type }}
{{- end }}
{{- end }}

{{/*
Where checkpoints are, to be moved from there: `sqlite`, `kubernetes`, `nats`, or `fleet/SLOTS`. Empty where there are none, and
where Helm sees no cluster. A Lease that says nothing is that of a pod which has not opened its volume yet.
*/}}
{{- define "watchfire.from" -}}
{{- if ne .Values.store.from "auto" }}
{{- .Values.store.from }}
{{- else if or .Values.rbac.create .Values.slots .Values.nats.url }}
{{- $lease := lookup "coordination.k8s.io/v1" "Lease" (include "watchfire.namespace" .) (include "watchfire.account" .) }}
{{- if $lease }}
{{- $place := dig "metadata" "annotations" "watchfire.dev/positions" "" $lease }}
{{- hasPrefix "fleet/" $place | ternary $place (splitList "/" $place | first | default "sqlite") }}
{{- end }}
{{- end }}
{{- end }}

{{/* Whether replicas that share the functions come, or come back, to a volume: its pod is one of them until checkpoints are moved. */}}
{{- define "watchfire.keepsVolume" -}}
{{- if and .Values.slots (eq (include "watchfire.from" .) "sqlite") }}true{{ end }}
{{- end }}

{{/*
How many pods the StatefulSet has: one beside a Deployment. Also one where it shares with a fleet and is to work alone: its controller would
bring a second pod first, which waits for the first to end, and would leave the first until the second is ready.
*/}}
{{- define "watchfire.setReplicas" -}}
{{- $from := include "watchfire.from" . }}
{{- $isFleets := and (hasPrefix "fleet" $from) (or (eq $from "fleet") (lookup "apps/v1" "StatefulSet" (include "watchfire.namespace" .) (include "watchfire.fullname" .))) }}
{{- if or .Values.slots $isFleets }}{{ min 1 .Values.replicas }}{{ else }}{{ .Values.replicas }}{{ end }}
{{- end }}

{{/* The NATS that has the checkpoints, or had them before. */}}
{{- define "watchfire.natsArgs" -}}
- --nats={{ .Values.nats.url }}
{{- if .Values.nats.existingSecret.name }}
- --nats-creds=/etc/watchfire/nats/credentials
{{- end }}
{{- if .Values.nats.tls.existingSecret.name }}
- --nats-ca=/etc/watchfire/nats/ca.crt
{{- if .Values.nats.tls.client }}
- --nats-cert=/etc/watchfire/nats/tls.crt
- --nats-key=/etc/watchfire/nats/tls.key
{{- end }}
{{- end }}
{{- if .Values.nats.replicas }}
- --nats-replicas={{ .Values.nats.replicas }}
{{- end }}
{{- end }}

{{/* The sources of the files that these name; empty where there are none. */}}
{{- define "watchfire.natsFiles" -}}
{{- $sources := list }}
{{- if .Values.nats.url }}
{{- with .Values.nats.existingSecret }}
{{- if .name }}{{ $sources = append $sources (dict "secret" (dict "name" .name "items" (list (dict "key" .key "path" "credentials")))) }}{{ end }}
{{- end }}
{{- with .Values.nats.tls }}
{{- $items := list "ca.crt" }}
{{- if .client }}{{ $items = concat $items (list "tls.crt" "tls.key") }}{{ end }}
{{- $files := list }}
{{- range $items }}{{ $files = append $files (dict "key" . "path" .) }}{{ end }}
{{- if .existingSecret.name }}{{ $sources = append $sources (dict "secret" (dict "name" .existingSecret.name "items" $files)) }}{{ end }}
{{- end }}
{{- end }}
{{- if $sources }}{{ toYaml $sources }}{{ end }}
{{- end }}

{{/* The chart's variables, and then the user's: one of the same name replaces the chart's. */}}
{{- define "watchfire.env" -}}
{{- $taken := list }}
{{- range .Values.extraEnv }}{{ $taken = append $taken .name }}{{ end }}
{{- $env := list }}
{{- range $name, $path := dict "POD_NAME" "metadata.name" "POD_NAMESPACE" "metadata.namespace" "POD_UID" "metadata.uid" }}
{{- $env = append $env (dict "name" $name "valueFrom" (dict "fieldRef" (dict "fieldPath" $path))) }}
{{- end }}
{{- $env = append $env (dict "name" "WATCHFIRE_LOG_LEVEL" "value" .Values.logLevel) }}
{{- $env = append $env (dict "name" "WATCHFIRE_DATA" "value" "/data") }}
{{- $kept := list }}
{{- range $env }}{{ if not (has .name $taken) }}{{ $kept = append $kept . }}{{ end }}{{ end }}
{{- toYaml (concat $kept (default list .Values.extraEnv)) }}
{{- end }}

{{- define "watchfire.podSecurityContext" -}}
{{- $context := default dict .Values.podSecurityContext }}
{{- if .Capabilities.APIVersions.Has "security.openshift.io/v1" }}
{{- $context = omit $context "fsGroup" "fsGroupChangePolicy" }}
{{- end }}
{{- toYaml $context }}
{{- end }}

{{/* The executor's own profile, whatever `securityContext` says of both containers. */}}
{{- define "watchfire.executorSecurityContext" -}}
{{- $profile := dict "type" .Values.executor.seccompProfile.type }}
{{- with .Values.executor.seccompProfile.localhostProfile }}{{ $_ := set $profile "localhostProfile" . }}{{ end }}
{{- toYaml (merge (dict "seccompProfile" $profile) (omit (default dict .Values.securityContext) "seccompProfile")) }}
{{- end }}

{{/* Whether only signed deployments are taken up: empty where not. */}}
{{- define "watchfire.trusts" -}}
{{- if or .Values.deployed.trust.keys .Values.deployed.trust.existingSecret.name }}true{{ end }}
{{- end }}

{{/* The names of the Secrets and ConfigMaps that the values give the pod, as a list: no function may write them. */}}
{{- define "watchfire.mounted" -}}
{{- $names := list .Values.deployed.trust.existingSecret.name .Values.nats.existingSecret.name .Values.nats.tls.existingSecret.name }}
{{- if .Values.backup.schedule }}{{ $names = append $names .Values.backup.to | concat (list .Values.backup.urlSecret.name) }}{{ end }}
{{- range .Values.imagePullSecrets }}{{ $names = append $names .name }}{{ end }}
{{- range .Values.extraVolumes }}
{{- $sources := list . }}
{{- range dig "projected" "sources" list . }}{{ $sources = append $sources . }}{{ end }}
{{- range $sources }}
{{- $names = concat $names (list (dig "secret" "secretName" "" .) (dig "secret" "name" "" .) (dig "configMap" "name" "" .)) }}
{{- end }}
{{- end }}
{{- range .Values.extraEnvFrom }}
{{- $names = concat $names (list (dig "secretRef" "name" "" .) (dig "configMapRef" "name" "" .)) }}
{{- end }}
{{- range .Values.extraEnv }}
{{- $names = concat $names (list (dig "valueFrom" "secretKeyRef" "name" "" .) (dig "valueFrom" "configMapKeyRef" "name" "" .)) }}
{{- end }}
{{- without $names "" | uniq | sortAlpha | toYaml }}
{{- end }}

{{/* "true" if the runtime reviews tokens of the cluster, which takes a cluster-wide right. */}}
{{- define "watchfire.tokenReview" -}}
{{- if and .Values.tokenReview.enabled (eq .Values.rbac.scope "cluster") }}true{{ end }}
{{- end -}}

{{/*
Values that `size` sets, as YAML with `resources`, `executor`, `cacheLimit` and `historySize`; the release's own values take precedence.
Helm removes null from a value that has a default, so `resources: null` means that the container has no resources.
*/}}
{{- define "watchfire.sized" -}}
{{- $sized := index (.Files.Get "files/sizes.yaml" | fromYaml) (default "medium" .Values.size) }}
{{- range $part, $own := dict "resources" .Values.resources "executor" .Values.executor.resources }}
{{- $merged := dict }}
{{- if kindIs "map" $own }}
{{- $merged = index $sized $part }}
{{- range $group, $amounts := $own }}
{{- if kindIs "map" $amounts }}
{{- $amounts = mergeOverwrite (dict) (index $merged $group | default dict) $amounts }}
{{- range $name, $amount := $amounts }}{{ if kindIs "invalid" $amount }}{{ $_ := unset $amounts $name }}{{ end }}{{ end }}
{{- end }}
{{- if $amounts }}{{ $_ := set $merged $group $amounts }}{{ else }}{{ $_ := unset $merged $group }}{{ end }}
{{- end }}
{{- end }}
{{- $_ := set $sized $part $merged }}
{{- end }}
{{- range $name, $own := dict "cacheLimit" .Values.cacheLimit "historySize" .Values.history.size }}
{{- if not (has (toString $own) (list "" "<nil>")) }}{{ $_ := set $sized $name $own }}{{ end }}
{{- end }}
{{- toYaml $sized }}
{{- end }}
