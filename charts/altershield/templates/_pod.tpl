{{- /* The fields of `spec` of a Deployment and of its pods that do not depend on the containers. */ -}}

{{- /* Argument: a dict with `root`, `component` and `surge` (whether a new pod may start before an old one ends). */ -}}
{{- define "altershield.rollout" -}}
{{- $root := .root -}}
revisionHistoryLimit: {{ int $root.Values.revisionHistoryLimit }}
# Nodes need time to route to a new pod. The rollout removes an old pod only after this time.
minReadySeconds: 5
strategy:
  {{- with $root.Values.strategy }}
  {{- toYaml . | nindent 2 }}
  {{- else }}
  type: RollingUpdate
  rollingUpdate:
    {{- /* With hostNetwork, two pods on the same node would use the same ports. */}}
    maxSurge: {{ ternary 1 0 .surge }}
    maxUnavailable: {{ ternary 0 1 .surge }}
  {{- end }}
selector:
  matchLabels: {{- include "altershield.selectorLabels" . | nindent 4 }}
{{- end -}}

{{- /* Argument: a dict with `root`, `account` and `grace` (seconds). */ -}}
{{- define "altershield.pod" -}}
{{- $root := .root -}}
serviceAccountName: {{ .account }}
# The containers that call the API server mount a token of their own.
automountServiceAccountToken: false
enableServiceLinks: false
{{- with include "altershield.pullSecrets" $root | fromJsonArray }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $root.Values.priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- with $root.Values.runtimeClassName }}
runtimeClassName: {{ . }}
{{- end }}
{{- with $root.Values.dnsConfig }}
dnsConfig: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $root.Values.hostAliases }}
hostAliases: {{- toYaml . | nindent 2 }}
{{- end }}
terminationGracePeriodSeconds: {{ .grace }}
securityContext: {{- toYaml $root.Values.podSecurityContext | nindent 2 }}
{{- with $root.Values.initContainers }}
initContainers: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- /* Argument: a dict with `root`, `component` and `alone` (whether a node may run only one of these pods). */ -}}
{{- define "altershield.scheduling" -}}
{{- $root := .root -}}
topologySpreadConstraints:
  {{- with $root.Values.topologySpreadConstraints }}
  {{- toYaml . | nindent 2 }}
  {{- else }}
  {{- range $key, $unsatisfiable := dict "topology.kubernetes.io/zone" $root.Values.topologySpread.zones "kubernetes.io/hostname" $root.Values.topologySpread.nodes }}
  - topologyKey: {{ $key }}
    maxSkew: 1
    whenUnsatisfiable: {{ $unsatisfiable }}
    labelSelector:
      matchLabels: {{- include "altershield.selectorLabels" $ | nindent 8 }}
    matchLabelKeys: [pod-template-hash]
  {{- end }}
  {{- end }}
{{- with $root.Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $root.Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- $affinity := deepCopy $root.Values.affinity }}
{{- if .alone }}
{{- $selector := dict "matchLabels" (include "altershield.selectorLabels" . | fromYaml) }}
{{- $term := dict "topologyKey" "kubernetes.io/hostname" "labelSelector" $selector }}
{{- $required := "requiredDuringSchedulingIgnoredDuringExecution" }}
{{- $anti := default dict $affinity.podAntiAffinity }}
{{- $_ := set $anti $required (append (default list (get $anti $required)) $term) }}
{{- $_ := set $affinity "podAntiAffinity" $anti }}
{{- end }}
{{- with $affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}
