{{- /* The containers. */ -}}

{{- /* The fields that all containers have in common. Argument: a dict with `root`, `resources`, `port` (for probes and
metrics; none: no probes), `env` and `mounts` (lists of objects), `token` (mount the service account's token), and
`kept` (the container shares the pod of the gatekeeper: its process is started again inside of the container, which stays
ready, because the kubelet counts the readiness of all containers of a pod). */ -}}
{{- define "altershield.container" -}}
image: {{ include "altershield.image" .root }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
{{- /* Quantities are strings, as the API server returns them. Otherwise GitOps tools report a difference for ever. */}}
{{- $resources := deepCopy .resources }}
{{- range $kind := list "requests" "limits" }}
{{- $quantities := default dict (get $resources $kind) }}
{{- range $name, $quantity := $quantities }}
{{- $_ := set $quantities $name (toString $quantity) }}
{{- end }}
{{- end }}
resources: {{- toYaml $resources | nindent 2 }}
{{- with .root.Values.containerSecurityContext }}
securityContext: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .env }}
env: {{- toYaml . | nindent 2 }}
{{- end }}
{{- $mounts := default list .mounts }}
{{- if .token }}
{{- $mounts = append $mounts (dict "name" "token" "mountPath" "/var/run/secrets/kubernetes.io/serviceaccount" "readOnly" true) }}
{{- end }}
{{- with $mounts }}
volumeMounts: {{- toYaml . | nindent 2 }}
{{- end }}
{{- if .kept }}
startupProbe: {{- merge (dict "httpGet" (dict "path" "/readyz" "port" .port)) .root.Values.probes.startup | toYaml | nindent 2 }}
{{- else if .port }}
livenessProbe: {{- merge (dict "httpGet" (dict "path" "/healthz" "port" .port)) .root.Values.probes.liveness | toYaml | nindent 2 }}
readinessProbe: {{- merge (dict "httpGet" (dict "path" "/readyz" "port" .port)) .root.Values.probes.readiness | toYaml | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "altershield.gatekeeper" -}}
{{- $root := . -}}
{{- with .Values.gatekeeper }}
- name: gatekeeper
  command: [python, -m, gatekeeper]
  args:
    - --port={{ int .port }}
    - --metrics-port={{ int .metricsPort }}
    - --tls-cert-file=/certificates/tls.crt
    - --tls-private-key-file=/certificates/tls.key
    - --shutdown-delay={{ .shutdownDelaySeconds }}
    {{- with $root.Values.webhooks.clientAuthentication }}
    {{- if .configMap }}
    - --client-ca-file=/clients/ca.crt
    {{- with .commonName }}
    - {{ printf "--client-name=%s" . | quote }}
    {{- end }}
    {{- end }}
    {{- end }}
    - --service-account={{ include "altershield.reconcilerUser" $root }}
    - --system-namespace={{ $root.Release.Namespace }}
    - --log-level={{ $root.Values.logLevel }}
  ports:
    - {name: webhook, containerPort: {{ int .port }}}
    - {name: metrics-webhook, containerPort: {{ int .metricsPort }}}
  {{- with .preStopSeconds }}
  lifecycle:
    preStop:
      sleep:
        seconds: {{ . }}
  {{- end }}
  {{- $mounts := list (dict "name" "certificates" "mountPath" "/certificates" "readOnly" true) }}
  {{- if $root.Values.webhooks.clientAuthentication.configMap }}
  {{- $mounts = append $mounts (dict "name" "clients" "mountPath" "/clients" "readOnly" true) }}
  {{- end }}
  {{- $mounts = concat $mounts $root.Values.extraVolumeMounts }}
  {{- $env := concat $root.Values.extraEnv .extraEnv }}
  {{- include "altershield.container" (dict "root" $root "port" "metrics-webhook" "resources" .resources "env" $env "mounts" $mounts "token" true) | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "altershield.reconciler" -}}
{{- $root := . -}}
{{- $callbacks := include "altershield.callbacks" . -}}
{{- with .Values.reconciler }}
- name: reconciler
  {{- $kept := not (include "altershield.separate" $root) }}
  command: [python, -m, {{ if $kept }}altershield.process.restarts, {{ end }}reconciler]
  args:
    - --metrics-port={{ int .metricsPort }}
    - --system-namespace={{ $root.Release.Namespace }}
    - --start-timeout={{ int .startTimeoutSeconds }}
    - --observe-seconds={{ int .observeSeconds }}
    - --batch-wait={{ int .batchWaitSeconds }}
    - --pre-timeout={{ int .preTimeoutSeconds }}
    - --post-timeout={{ int .postTimeoutSeconds }}
    - --history-limit={{ int .historyLimit }}
    - --lease-duration={{ int .leaseDurationSeconds }}
    {{- if .separationOfDuties }}
    - --separation-of-duties
    {{- end }}
    - {{ printf "--checks-allowed-hosts=%s" (join "," $root.Values.checks.allowedHosts) | quote }}
    {{- with include "altershield.namespaceSelector" $root }}
    - {{ printf "--namespace-selector=%s" . | quote }}
    {{- end }}
    {{- with $root.Values.server }}
    {{- if .url }}
    - {{ printf "--server-url=%s" .url | quote }}
    - {{ printf "--server-platform=%s" .platform | quote }}
    - {{ printf "--server-tenant=%s" .tenant | quote }}
    - {{ printf "--server-scene=%s" .scene | quote }}
    - --server-phase={{ .phase }}
    {{- if .tokenSecret.name }}
    - --server-token-file=/server/token
    {{- end }}
    {{- end }}
    {{- if .callbacks.enabled }}
    - --callback-port={{ int .callbacks.port }}
    - {{ printf "--callback-url=%s" (include "altershield.callbacksUrl" $root) | quote }}
    {{- if .callbacks.tls }}
    - --callback-tls-cert-file=/certificates/tls.crt
    - --callback-tls-private-key-file=/certificates/tls.key
    {{- end }}
    {{- end }}
    {{- end }}
    - --log-level={{ $root.Values.logLevel }}
  ports:
    - {name: metrics-recon, containerPort: {{ int .metricsPort }}}
    {{- if $callbacks }}
    - {name: callbacks, containerPort: {{ int $root.Values.server.callbacks.port }}}
    {{- end }}
  {{- $env := list }}
  {{- $mounts := list }}
  {{- if and $callbacks $root.Values.server.callbacks.tls }}
  {{- $mounts = append $mounts (dict "name" "certificates" "mountPath" "/certificates" "readOnly" true) }}
  {{- end }}
  {{- if include "altershield.serverToken" $root }}
  {{- /* A directory, not a subPath: the kubelet does not update the file of a subPath when the Secret changes. */}}
  {{- $mounts = append $mounts (dict "name" "server-token" "mountPath" "/server" "readOnly" true) }}
  {{- end }}
  {{- if $root.Values.notifications.secretName }}
  {{- /* A variable instead of an argument, so that `altershield notify test` uses the same file in this container. */}}
  {{- $env = append $env (dict "name" "ALTERSHIELD_NOTIFICATIONS_FILE" "value" "/notifications/receivers.yaml") }}
  {{- $mounts = append $mounts (dict "name" "notifications" "mountPath" "/notifications" "readOnly" true) }}
  {{- end }}
  {{- $mounts = concat $mounts $root.Values.extraVolumeMounts }}
  {{- $env = concat $env $root.Values.extraEnv .extraEnv }}
  {{- include "altershield.container" (dict "root" $root "port" "metrics-recon" "resources" .resources "env" $env "mounts" $mounts "token" true "kept" $kept) | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "altershield.certgen" -}}
{{- $root := . -}}
{{- $name := include "altershield.fullname" . -}}
{{- with .Values.certificates }}
# Runs in every mode. It creates the certificate, or checks and watches the provided one, and writes it to the
# shared volume for the gatekeeper.
- name: certgen
  command: [python, -m, altershield.process.restarts, certgen]
  args:
    - run
    - --directory=/certificates
    - --metrics-port={{ int .metricsPort }}
    {{- if $root.Values.rbac.create }}
    - --owner={{ $name }}
    {{- end }}
  ports:
    - {name: metrics-cert, containerPort: {{ int .metricsPort }}}
  {{- /* Environment variables instead of arguments, so that `python -m certgen show` and `rotate` use the same values when
  they are executed in this container. */}}
  {{- $env := list
    (dict "name" "ALTERSHIELD_MODE" "value" .mode)
    (dict "name" "ALTERSHIELD_SYSTEM_NAMESPACE" "value" $root.Release.Namespace)
    (dict "name" "ALTERSHIELD_SECRET" "value" (include "altershield.secretName" $root))
    (dict "name" "ALTERSHIELD_WEBHOOK_CONFIGURATION" "value" $name)
    (dict "name" "ALTERSHIELD_SERVICE" "value" $name)
  }}
  {{- if eq .mode "certgen" }}
  {{- $env = concat $env (list
    (dict "name" "ALTERSHIELD_CA_LIFETIME" "value" (int .caLifetimeSeconds | toString))
    (dict "name" "ALTERSHIELD_LEAF_LIFETIME" "value" (int .leafLifetimeSeconds | toString))
    (dict "name" "ALTERSHIELD_SETTLE" "value" (int .settleSeconds | toString))
  ) }}
  {{- $hosts := include "altershield.hosts" $root | fromJsonArray }}
  {{- if gt (len $hosts) 3 }}
  {{- /* All names, instead of those of ALTERSHIELD_SERVICE only. */}}
  {{- $env = append $env (dict "name" "ALTERSHIELD_SAN" "value" (join " " $hosts)) }}
  {{- end }}
  {{- end }}
  {{- $env = append $env (dict "name" "ALTERSHIELD_LOG_LEVEL" "value" $root.Values.logLevel) }}
  {{- $env = concat $env $root.Values.extraEnv .extraEnv }}
  {{- $mounts := concat (list (dict "name" "certificates" "mountPath" "/certificates")) $root.Values.extraVolumeMounts }}
  {{- include "altershield.container" (dict "root" $root "port" "metrics-cert" "resources" .resources "env" $env "mounts" $mounts "token" true "kept" true) | nindent 2 }}
{{- end }}
{{- end -}}

{{- /* "true" if the reconciler gets the token of an AlterShield server, otherwise empty. */ -}}
{{- define "altershield.serverToken" -}}
{{- if and .Values.server.url .Values.server.tokenSecret.name -}}
true
{{- end -}}
{{- end -}}

{{- /* The volumes that only the reconciler mounts. */ -}}
{{- define "altershield.reconcilerVolumes" -}}
{{- if include "altershield.serverToken" . }}
- name: server-token
  secret:
    secretName: {{ .Values.server.tokenSecret.name }}
    items:
      - {key: {{ .Values.server.tokenSecret.key | quote }}, path: token}
{{- end }}
{{- with .Values.notifications.secretName }}
- name: notifications
  secret:
    secretName: {{ . }}
    items:
      - {key: receivers.yaml, path: receivers.yaml}
{{- end }}
{{- end -}}

{{- /* The token of the service account. Only containers that call the API server mount it. The kubelet renews it. A token
that was requested for exactly 3607 seconds would be valid for a year. */ -}}
{{- define "altershield.tokenVolume" -}}
- name: token
  projected:
    sources:
      - serviceAccountToken:
          path: token
          expirationSeconds: 3600
      - configMap:
          name: kube-root-ca.crt
          items:
            - {key: ca.crt, path: ca.crt}
      - downwardAPI:
          items:
            - path: namespace
              fieldRef: {apiVersion: v1, fieldPath: metadata.namespace}
{{- end -}}
