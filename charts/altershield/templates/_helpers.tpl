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

{{- /* "true" if the reconciler has a Deployment of its own, otherwise empty. */ -}}
{{- define "altershield.separate" -}}
{{- if .Values.reconciler.separate -}}
true
{{- end -}}
{{- end -}}

{{- /* The component that runs the reconciler: `gate` or, with a Deployment of its own, `reconciler`. */ -}}
{{- define "altershield.reconcilerComponent" -}}
{{- ternary "reconciler" "gate" (eq (include "altershield.separate" .) "true") -}}
{{- end -}}

{{- /* The name of the Deployment that runs the reconciler, and of its other objects. */ -}}
{{- define "altershield.reconcilerName" -}}
{{- include "altershield.fullname" . }}{{ if include "altershield.separate" . }}-reconciler{{ end }}
{{- end -}}

{{- /* The service account of the gatekeeper and of certgen. */ -}}
{{- define "altershield.account" -}}
{{- default (include "altershield.fullname" .) .Values.serviceAccount.name -}}
{{- end -}}

{{- /* The service account of the reconciler. */ -}}
{{- define "altershield.reconcilerAccount" -}}
{{- if include "altershield.separate" . -}}
{{- default (include "altershield.reconcilerName" .) .Values.reconciler.serviceAccount.name -}}
{{- else -}}
{{- include "altershield.account" . -}}
{{- end -}}
{{- end -}}

{{- /* The user name of the reconciler at the API server. */ -}}
{{- define "altershield.reconcilerUser" -}}
system:serviceaccount:{{ .Release.Namespace }}:{{ include "altershield.reconcilerAccount" . }}
{{- end -}}

{{- /* Labels that select the pods of a Deployment. Argument: a dict with `root` and `component`. */ -}}
{{- define "altershield.selectorLabels" -}}
app.kubernetes.io/name: {{ include "altershield.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
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

{{- /* Labels of the pods of a Deployment. Argument: a dict with `root` and `component`. */ -}}
{{- define "altershield.podLabels" -}}
{{- $own := include "altershield.selectorLabels" . | fromYaml -}}
{{- $_ := set $own "app.kubernetes.io/part-of" "altershield" -}}
{{- toYaml (merge $own .root.Values.podLabels) -}}
{{- end -}}

{{- /* The domain `.invalid` exists nowhere (RFC 2606), so nobody can publish an image under the default name. A registry
replaces it. */ -}}
{{- define "altershield.image" -}}
{{- with .Values.image -}}
{{- $registry := default .registry $.Values.global.imageRegistry -}}
{{- $repository := .repository -}}
{{- if $registry -}}
{{- $repository = printf "%s/%s" (trimSuffix "/" $registry) (trimPrefix "registry.invalid/" .repository) -}}
{{- end -}}
{{- if .digest -}}
{{ $repository }}@{{ .digest }}
{{- else -}}
{{ $repository }}:{{ default $.Chart.AppVersion .tag }}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* The Secrets with credentials for the registry, as a JSON list without duplicates. Parent charts list global ones as
names or as objects. */ -}}
{{- define "altershield.pullSecrets" -}}
{{- $names := list -}}
{{- range concat (default list .Values.global.imagePullSecrets) .Values.imagePullSecrets -}}
{{- $names = append $names (ternary . (dict "name" .) (kindIs "map" .)) -}}
{{- end -}}
{{- toJson (uniq $names) -}}
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

{{- /* The hosts for which the serving certificate is, as a JSON list: the names of the Services, and the host of
`webhooks.url`. API servers use the first. Without callbacks over TLS, there is only one Service. */ -}}
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
{{- with include "altershield.webhookHost" . -}}
{{- $hosts = append $hosts . -}}
{{- end -}}
{{- toJson $hosts -}}
{{- end -}}

{{- /* The host of `webhooks.url` without brackets; empty without it. */ -}}
{{- define "altershield.webhookHost" -}}
{{- with .Values.webhooks.url -}}
{{- regexReplaceAll ":[0-9]+$" (regexFind "^https://[^/]*" . | trimPrefix "https://") "" | trimAll "[]" -}}
{{- end -}}
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
{{- end -}}
{{- end -}}

{{- /* All containers of a pod share one network; with `hostNetwork`, all processes of the node do. */ -}}
{{- define "altershield.refusePorts" -}}
{{- $separate := include "altershield.separate" . -}}
{{- $used := dict -}}
{{- $ports := list
  (list "gatekeeper.port" .Values.gatekeeper.port)
  (list "gatekeeper.metricsPort" .Values.gatekeeper.metricsPort)
  (list "certificates.metricsPort" .Values.certificates.metricsPort)
-}}
{{- $reconciler := list (list "reconciler.metricsPort" .Values.reconciler.metricsPort) -}}
{{- if include "altershield.callbacks" . -}}
{{- $reconciler = append $reconciler (list "server.callbacks.port" .Values.server.callbacks.port) -}}
{{- end -}}
{{- range ternary (list $ports $reconciler) (list (concat $ports $reconciler)) (eq $separate "true") -}}
{{- $used := dict -}}
{{- range . -}}
{{- $port := int (last .) | toString -}}
{{- if hasKey $used $port -}}
{{- fail (printf "%s must not be %s: another container of the pod uses this port (%s)" (first .) $port (get $used $port)) -}}
{{- end -}}
{{- $_ := set $used $port (first .) -}}
{{- end -}}
{{- end -}}
{{- if and .Values.hostNetwork (eq (int .Values.gatekeeper.port) 10250) -}}
{{- fail "gatekeeper.port must not be 10250 with hostNetwork: the kubelet of each node uses this port; set another one, such as 10260" -}}
{{- end -}}
{{- end -}}

{{- /* The account `default` is not an alternative: all pods of the namespace without an account have it. */ -}}
{{- define "altershield.refuseAccounts" -}}
{{- if and (not .Values.serviceAccount.create) (not .Values.serviceAccount.name) -}}
{{- fail "serviceAccount.name must be set if serviceAccount.create is false" -}}
{{- end -}}
{{- with .Values.reconciler -}}
{{- if and .separate (not .serviceAccount.create) (not .serviceAccount.name) -}}
{{- fail "reconciler.serviceAccount.name must be set if reconciler.serviceAccount.create is false" -}}
{{- end -}}
{{- end -}}
{{- if and .Values.reconciler.separate (eq (include "altershield.account" .) (include "altershield.reconcilerAccount" .)) -}}
{{- fail "reconciler.serviceAccount.name must not be serviceAccount.name: the gatekeeper would get the permissions of the reconciler" -}}
{{- end -}}
{{- end -}}

{{- define "altershield.refuseAutoscaling" -}}
{{- with .Values.autoscaling -}}
{{- if and .enabled (gt (int .minReplicas) (int .maxReplicas)) -}}
{{- fail (printf "autoscaling.maxReplicas (%d) must be at least autoscaling.minReplicas (%d)" (int .maxReplicas) (int .minReplicas)) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* The API server calls the path of each webhook below this URL. */ -}}
{{- define "altershield.refuseUrl" -}}
{{- with .Values.webhooks.url -}}
{{- if not (regexMatch "^https://([A-Za-z0-9.-]+|\\[[0-9A-Fa-f:.]+\\])(:[1-9][0-9]{0,4})?(/[^?#]*)?$" .) -}}
{{- fail "webhooks.url must look like https://altershield.example.com or https://10.0.0.1:8443/path, without a user, a password, a query or a fragment" -}}
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

{{- /* Requirements on namespaces in addition to the label, as a JSON list of expressions of a label selector. The gatekeeper
and the reconciler never act in `kube-system` and in the namespace of the release. */ -}}
{{- define "altershield.namespaceExpressions" -}}
{{- $found := list -}}
{{- with .Values.webhooks -}}
{{- range $key, $value := default dict .namespaceSelector.matchLabels -}}
{{- $found = append $found (dict "key" $key "operator" "In" "values" (list $value)) -}}
{{- end -}}
{{- $found = concat $found (default list .namespaceSelector.matchExpressions) -}}
{{- with .exemptNamespaces -}}
{{- $found = append $found (dict "key" "kubernetes.io/metadata.name" "operator" "NotIn" "values" .) -}}
{{- end -}}
{{- end -}}
{{- toJson $found -}}
{{- end -}}

{{- /* The same as a label selector in one string, for the reconciler. */ -}}
{{- define "altershield.namespaceSelector" -}}
{{- $found := list -}}
{{- range include "altershield.namespaceExpressions" . | fromJsonArray -}}
{{- $values := join "," (default list .values) -}}
{{- if eq .operator "In" -}}
{{- $found = append $found (printf "%s in (%s)" .key $values) -}}
{{- else if eq .operator "NotIn" -}}
{{- $found = append $found (printf "%s notin (%s)" .key $values) -}}
{{- else -}}
{{- $found = append $found (printf "%s%s" (ternary "!" "" (eq .operator "DoesNotExist")) .key) -}}
{{- end -}}
{{- end -}}
{{- join "," $found -}}
{{- end -}}
