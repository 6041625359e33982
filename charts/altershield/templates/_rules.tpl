{{- /* RBAC. */ -}}

{{- /* The permissions of the reconciler in all namespaces. `make crds` writes the file. */ -}}
{{- define "altershield.reconcilerRules" -}}
{{ .Files.Get "files/reconciler_rules.yaml" | trim }}
{{- if include "altershield.callbacks" . }}
# The callback port learns from the API server who its callers are, and what they may do.
- apiGroups: [authentication.k8s.io]
  resources: [tokenreviews]
  verbs: [create]
- apiGroups: [authorization.k8s.io]
  resources: [subjectaccessreviews]
  verbs: [create]
{{- end }}
{{- if .Values.checks.jobs.enabled }}
# Checks with Jobs. The admission policies let only users who may create Jobs write a DefensePolicy with a Job.
- apiGroups: [batch]
  resources: [jobs]
  verbs: [get, create, delete]
{{- end }}
{{- if .Values.checks.logs.enabled }}
# Checks of logs. The admission policies let only users who may read logs write a DefensePolicy with such a check.
- apiGroups: [""]
  resources: [pods/log]
  verbs: [get]
{{- end }}
{{- end -}}

{{- define "altershield.reconcilerSystemRules" -}}
- apiGroups: [app.ops.cloud.alipay.com]
  resources: [opsconfiginfoes]
  verbs: [create]
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [get, create, update]
# The calendars of ReleaseWindows. RBAC cannot select ConfigMaps by their label, so only this namespace's are read.
- apiGroups: [""]
  resources: [configmaps]
  verbs: [list, watch]
{{- if .Values.server.url }}
# The records of orders that are open on the AlterShield server.
- apiGroups: [""]
  resources: [configmaps]
  verbs: [list, watch, create, delete]
{{- end }}
{{- end -}}

{{- /* Argument: a dict with `root`, `component`, `account` and `annotations`. */ -}}
{{- define "altershield.serviceAccount" -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ .account }}
  namespace: {{ .root.Release.Namespace }}
  labels: {{- include "altershield.labels" . | nindent 4 }}
  {{- with .annotations }}
  annotations: {{- toYaml . | nindent 4 }}
  {{- end }}
# Only some containers need the token. They mount it themselves.
automountServiceAccountToken: false
{{- end -}}
