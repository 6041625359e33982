{{- define "altershield.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- /* The name of all objects: the release's name, with the chart's name unless it contains that already. The limit of
48 characters leaves room for suffixes. */ -}}
{{- define "altershield.fullname" -}}
{{- $name := include "altershield.name" . -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 48 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 48 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 48 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "altershield.selectorLabels" -}}
app.kubernetes.io/name: {{ include "altershield.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: gate
{{- end -}}

{{- /* Labels of an object. Argument: a dict with `root`, `component` and, optionally, `more` labels. */ -}}
{{- define "altershield.labels" -}}
{{- $own := dict
  "helm.sh/chart" (printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-")
  "app.kubernetes.io/name" (include "altershield.name" .root)
  "app.kubernetes.io/instance" .root.Release.Name
  "app.kubernetes.io/component" .component
  "app.kubernetes.io/part-of" "altershield"
  "app.kubernetes.io/version" .root.Chart.AppVersion
  "app.kubernetes.io/managed-by" .root.Release.Service
-}}
{{- toYaml (merge $own (default dict .more) .root.Values.commonLabels) -}}
{{- end -}}

{{- /* Labels of the Deployment's pods. */ -}}
{{- define "altershield.podLabels" -}}
{{- $own := include "altershield.selectorLabels" . | fromYaml -}}
{{- $_ := set $own "app.kubernetes.io/part-of" "altershield" -}}
{{- toYaml (merge $own .Values.podLabels) -}}
{{- end -}}

{{- define "altershield.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ default $.Chart.AppVersion .tag }}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "altershield.secretName" -}}
{{- default (printf "%s-tls" (include "altershield.fullname" .)) .Values.certificates.secretName -}}
{{- end -}}

{{- /* "true" if the callback port is on, otherwise empty. */ -}}
{{- define "altershield.callbacks" -}}
{{- if .Values.server.callbacks.enabled -}}
true
{{- end -}}
{{- end -}}

{{- /* The URL of the callback port, without a path of the port. */ -}}
{{- define "altershield.callbacksUrl" -}}
{{- with .Values.server.callbacks -}}
{{- default (printf "%s://%s-callbacks.%s.svc:%d" (ternary "https" "http" .tls) (include "altershield.fullname" $) $.Release.Namespace (int .port)) .url -}}
{{- end -}}
{{- end -}}

{{- /* The DNS names of the Services to which the serving certificate belongs, as a JSON list. API servers use the first.
Without callbacks over TLS, there is only one Service. */ -}}
{{- define "altershield.hosts" -}}
{{- $name := include "altershield.fullname" . -}}
{{- $services := list $name -}}
{{- if and (include "altershield.callbacks" .) .Values.server.callbacks.tls -}}
{{- $services = append $services (printf "%s-callbacks" $name) -}}
{{- end -}}
{{- $hosts := list -}}
{{- range $services -}}
{{- $host := printf "%s.%s" . $.Release.Namespace -}}
{{- $hosts = concat $hosts (list (printf "%s.svc" $host) (printf "%s.svc.cluster.local" $host) $host) -}}
{{- end -}}
{{- toJson $hosts -}}
{{- end -}}

{{- /* The fields that all containers have in common. Argument: a dict with `root`, `port` (for probes and metrics) and
`resources`. */ -}}
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
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
{{- with .port }}
livenessProbe:
  httpGet: {path: /healthz, port: {{ . }}}
  initialDelaySeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
  terminationGracePeriodSeconds: 10  # a process that hangs does not shut down gracefully
readinessProbe:
  httpGet: {path: /readyz, port: {{ . }}}
  periodSeconds: 3
  timeoutSeconds: 3
  failureThreshold: 2
{{- end }}
{{- end -}}

{{- /* certgen refuses these lifetimes. Fail here, before pods are created that cannot start. */ -}}
{{- define "altershield.refuseLifetimes" -}}
{{- with .Values.certificates -}}
{{- if and (eq .mode "certgen") (gt (mul 3 (int .leafLifetimeSeconds)) (int .caLifetimeSeconds)) -}}
{{- fail (printf "certificates.caLifetimeSeconds (%d) must be at least three times certificates.leafLifetimeSeconds (%d)" (int .caLifetimeSeconds) (int .leafLifetimeSeconds)) -}}
{{- end -}}
{{- if and (eq .mode "certgen") (gt (mul 3 (int .settleSeconds)) (int .leafLifetimeSeconds)) -}}
{{- fail (printf "certificates.leafLifetimeSeconds (%d) must be at least three times certificates.settleSeconds (%d)" (int .leafLifetimeSeconds) (int .settleSeconds)) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* The reconciler refuses these values. Fail here, before pods are created that cannot start. */ -}}
{{- define "altershield.refuseServer" -}}
{{- with .Values.server -}}
{{- $url := "^https?://([A-Za-z0-9._-]+|\\[[0-9A-Fa-f:.]+\\])(:[1-9][0-9]{0,4})?(/[^?#]*)?$" -}}
{{- if and .url (not (regexMatch $url .url)) -}}
{{- fail "server.url must look like http://altershield:8080 or https://altershield.example/path, without a user, a password, a query or a fragment (for the token, use server.tokenSecret)" -}}
{{- end -}}
{{- $port := include "altershield.serverPort" $ -}}
{{- if and $port (or (lt (int $port) 1) (gt (int $port) 65535)) -}}
{{- fail (printf "server.url must have a port from 1 to 65535, not %s" $port) -}}
{{- end -}}
{{- if and .callbacks.url (not (regexMatch $url .callbacks.url)) -}}
{{- fail "server.callbacks.url must look like https://releases.example.com, without a user, a password, a query or a fragment" -}}
{{- end -}}
{{- if and .callbacks.enabled (has (int .callbacks.port) (list 8080 8081 8082 9443)) -}}
{{- fail (printf "server.callbacks.port must not be %d: another container of the pod uses this port" (int .callbacks.port)) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* The port of the AlterShield server's URL; empty without a server. */ -}}
{{- define "altershield.serverPort" -}}
{{- with .Values.server.url -}}
{{- $host := regexFind "^https?://[^/]*" . -}}
{{- with regexFind ":[0-9]+$" $host -}}
{{- trimPrefix ":" . -}}
{{- else -}}
{{- ternary "443" "80" (hasPrefix "https:" .) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* Two installations in one cluster would undo each other's changes. `lookup` finds the other one only if Helm is
connected to the cluster: `helm template` does not fail here. */ -}}
{{- define "altershield.refuseSecond" -}}
{{- $name := include "altershield.fullname" . -}}
{{- range (lookup "admissionregistration.k8s.io/v1" "ValidatingWebhookConfiguration" "" "").items -}}
{{- $release := dig "annotations" "meta.helm.sh/release-name" "" .metadata -}}
{{- $namespace := dig "annotations" "meta.helm.sh/release-namespace" "" .metadata -}}
{{- $isOurs := and (eq $release $.Release.Name) (eq $namespace $.Release.Namespace) -}}
{{- if and (eq (dig "labels" "app.kubernetes.io/part-of" "" .metadata) "altershield") (ne .metadata.name $name) (not $isOurs) -}}
{{- fail (printf "AlterShield is already installed in this cluster (ValidatingWebhookConfiguration %s): upgrade that release, or remove it first with `helm uninstall` or `altershield uninstall`" .metadata.name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
