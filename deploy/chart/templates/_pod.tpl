{{/* The pod of a StatefulSet, and of a Deployment where replicas share the functions: of (list $ KIND). */}}
{{- define "watchfire.pod" -}}
{{- $isClaimed := eq (last .) "StatefulSet" }}
{{- $sized := include "watchfire.sized" (first .) | fromYaml }}
{{- with first . }}
metadata:
  labels:
    {{- include "watchfire.labelsAnd" (list . .Values.podLabels) | nindent 4 }}
  {{- $trusted := default list .Values.deployed.trust.keys | join "\n" }}
  {{- /* Clouds that give the account's pods an identity would give it to the executor as well. */}}
  {{- $own := dict "eks.amazonaws.com/skip-containers" "executor" "azure.workload.identity/skip-containers" "executor" }}
  {{- if $trusted }}{{ $_ := set $own "watchfire.dev/trusted-keys" $trusted }}{{ end }}
  {{- include "watchfire.annotations" (list . (merge (dict) (default dict .Values.podAnnotations) $own)) | nindent 2 }}
spec:
  serviceAccountName: {{ include "watchfire.account" . | quote }}
  # The token is mounted below, into the runtime's container alone.
  automountServiceAccountToken: false
  enableServiceLinks: false
  # Each container's first process ends all others of its container, and of no other one.
  shareProcessNamespace: false
  hostPID: false
  {{- if .Values.userNamespace }}
  hostUsers: false
  {{- end }}
  {{- with .Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.priorityClassName }}
  priorityClassName: {{ . | quote }}
  {{- end }}
  {{- with .Values.runtimeClassName }}
  runtimeClassName: {{ . | quote }}
  {{- end }}
  {{- with .Values.dnsPolicy }}
  dnsPolicy: {{ . }}
  {{- end }}
  {{- with .Values.dnsConfig }}
  dnsConfig:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.hostAliases }}
  hostAliases:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  terminationGracePeriodSeconds: {{ .Values.terminationGracePeriodSeconds }}
  securityContext:
    {{- include "watchfire.podSecurityContext" . | nindent 4 }}
  {{- with .Values.extraInitContainers }}
  initContainers:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  containers:
    - name: watchfire
      image: {{ include "watchfire.image" . | quote }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      args:
        - start
        - --functions=/functions
        - --data=/data
        - --listen=0.0.0.0:{{ .Values.port }}
        - --executor-socket=/run/watchfire/executor.sock
        {{- if .Values.executor.jitless }}
        - --jitless
        {{- end }}
        {{- if .Values.console.enabled }}
        - --console
        {{- end }}
        {{- if include "watchfire.tokenReview" . }}
        - --token-review
        {{- end }}
        - --cache-limit={{ $sized.cacheLimit }}
        - --history-size={{ $sized.historySize }}
        - --history-age={{ .Values.history.age }}
        - --identity={{ .Values.identity }}
        - --service-account={{ include "watchfire.account" . }}
        {{- if .Values.slots }}
        - --slots={{ .Values.slots }}
        {{- else }}
        - --leader-elect
        {{- end }}
        - --lease-duration={{ .Values.lease.duration }}
        - --store={{ include "watchfire.store" . }}
        {{- if .Values.nats.url }}
        {{- include "watchfire.natsArgs" . | nindent 8 }}
        {{- end }}
        {{- if .Values.deployed.enabled }}
        - --deployed
        {{- end }}
        {{- with .Values.sets }}
        {{- if .namespaces }}
        {{- range .namespaces }}
        - --sets-namespace={{ . }}
        {{- end }}
        - --sets-functions={{ int .limits.functions }}
        - --sets-memory={{ .limits.memory }}
        {{- end }}
        {{- end }}
        {{- if .Values.deployed.trust.keys }}
        - --trust=/etc/watchfire/trust/keys.pem
        {{- end }}
        {{- if .Values.deployed.trust.existingSecret.name }}
        - --trust=/etc/watchfire/trust/secret.pem
        {{- end }}
        {{- range include "watchfire.mounted" . | fromYamlArray }}
        - --reserve={{ . }}
        {{- end }}
        {{- if .Values.functionStatus.enabled }}
        - --function-status
        {{- end }}
        {{- with .Values.extraArgs }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      env:
        {{- include "watchfire.env" . | nindent 8 }}
      {{- with .Values.extraEnvFrom }}
      envFrom:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      ports:
        - name: http
          containerPort: {{ .Values.port }}
        {{- if and .Values.slots .Values.console.enabled }}
        # Replicas ask each other, encrypted by keys that they agree on: see the console's page.
        - name: replicas
          containerPort: {{ add1 .Values.port }}
        {{- end }}
      {{- $livez := dict "httpGet" (dict "path" "/livez" "port" "http") }}
      {{- $readyz := dict "httpGet" (dict "path" "/readyz" "port" "http") }}
      {{- $startup := dict "periodSeconds" 1 "timeoutSeconds" 3 "failureThreshold" .Values.startupSeconds }}
      {{- include "watchfire.probe" (list "startupProbe" (merge $startup $livez) (.Values.probes).startup) | nindent 6 }}
      {{- $live := dict "periodSeconds" 10 "timeoutSeconds" 5 "failureThreshold" 3 }}
      {{- include "watchfire.probe" (list "livenessProbe" (merge $live $livez) (.Values.probes).liveness) | nindent 6 }}
      {{- $ready := dict "periodSeconds" 2 "timeoutSeconds" 3 "failureThreshold" 3 }}
      {{- include "watchfire.probe" (list "readinessProbe" (merge $ready $readyz) (.Values.probes).readiness) | nindent 6 }}
      securityContext:
        {{- toYaml (default dict .Values.securityContext) | nindent 8 }}
      resources:
        {{- toYaml $sized.resources | nindent 8 }}
      volumeMounts:
        - { name: data, mountPath: /data }
        - { name: socket, mountPath: /run/watchfire }
        - { name: tmp, mountPath: /tmp }
        - { name: account, mountPath: /var/run/secrets/kubernetes.io/serviceaccount, readOnly: true }
        {{- if eq .Values.functions.source "oci" }}
        - name: functions
          mountPath: /functions
          readOnly: true
          {{- with .Values.functions.oci.subPath }}
          subPath: {{ . | quote }}
          {{- end }}
        {{- end }}
        {{- if include "watchfire.trusts" . }}
        - { name: trust, mountPath: /etc/watchfire/trust, readOnly: true }
        {{- end }}
        {{- if include "watchfire.natsFiles" . }}
        - { name: nats, mountPath: /etc/watchfire/nats, readOnly: true }
        {{- end }}
        {{- with .Values.extraVolumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
    # Runs the handlers: it has no account's token, no variable and no volume but the socket, whose folder it cannot write to.
    - name: executor
      image: {{ include "watchfire.image" . | quote }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      args:
        - executor
        - --socket=/run/watchfire/executor.sock
      securityContext:
        {{- include "watchfire.executorSecurityContext" . | nindent 8 }}
      resources:
        {{- toYaml $sized.executor | nindent 8 }}
      volumeMounts:
        - { name: socket, mountPath: /run/watchfire, readOnly: true }
    {{- with .Values.extraContainers }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  volumes:
    {{- if not (and $isClaimed .Values.persistence.enabled) }}
    - name: data
      emptyDir: { sizeLimit: {{ include "watchfire.text" .Values.persistence.emptyDirSizeLimit | quote }} }
    {{- end }}
    - name: socket
      emptyDir: { medium: Memory, sizeLimit: 1Mi }
    - name: tmp
      emptyDir: { sizeLimit: 64Mi }
    # What a pod's account is mounted as by default.
    - name: account
      projected:
        sources:
          - serviceAccountToken: { path: token, expirationSeconds: 3607 }
          - configMap: { name: kube-root-ca.crt, items: [{ key: ca.crt, path: ca.crt }] }
          - downwardAPI: { items: [{ path: namespace, fieldRef: { fieldPath: metadata.namespace } }] }
    {{- if eq .Values.functions.source "oci" }}
    - name: functions
      image:
        reference: {{ .Values.functions.oci.reference | quote }}
        pullPolicy: {{ .Values.functions.oci.pullPolicy }}
    {{- end }}
    {{- if include "watchfire.trusts" . }}
    # No ConfigMap: who may write those must not choose whose signature counts.
    - name: trust
      projected:
        sources:
          {{- if .Values.deployed.trust.keys }}
          - downwardAPI:
              items: [{ path: keys.pem, fieldRef: { fieldPath: "metadata.annotations['watchfire.dev/trusted-keys']" } }]
          {{- end }}
          {{- with .Values.deployed.trust.existingSecret }}
          {{- if .name }}
          - secret: { name: {{ .name | quote }}, items: [{ key: {{ .key | quote }}, path: secret.pem }] }
          {{- end }}
          {{- end }}
    {{- end }}
    {{- with include "watchfire.natsFiles" . }}
    - name: nats
      projected:
        sources:
          {{- . | nindent 10 }}
    {{- end }}
    {{- with .Values.extraVolumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with .Values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  topologySpreadConstraints:
    {{- $pods := dict "labelSelector" (dict "matchLabels" (include "watchfire.selector" . | fromYaml)) }}
    {{- range .Values.topologySpreadConstraints }}
    - {{- toYaml (merge (dict) . (hasKey . "labelSelector" | ternary dict $pods)) | nindent 6 }}
    {{- else }}
    - maxSkew: 1
      topologyKey: kubernetes.io/hostname
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "watchfire.selector" . | nindent 10 }}
    {{- end }}
{{- end }}
{{- end }}
