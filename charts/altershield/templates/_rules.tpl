{{- /* RBAC. */ -}}

{{- /* The permissions of the reconciler in all namespaces: altershield/install/rbac.py. */ -}}
{{- define "altershield.reconcilerRules" -}}
- apiGroups: [""]
  resources: [namespaces, nodes]
  verbs: [list, watch]
# `get` to see whether a deletion that was admitted happened.
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch, patch, delete]
- apiGroups: [""]
  resources: [events]
  verbs: [list, create, patch]
# Whether a Namespace that is protected from cascading deletion is empty.
- apiGroups: [""]
  resources: [persistentvolumeclaims]
  verbs: [list]
# The budgets that annotations ask for; `get` after a conflict of two writers of the status.
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [list, watch, create, patch, delete]
- apiGroups: [app.ops.cloud.alipay.com]
  resources: [podunavailablebudgets]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [app.ops.cloud.alipay.com]
  resources: [podunavailablebudgets/status]
  verbs: [update]
# The kinds of workloads, and the objects that contain their released pod templates.
- apiGroups: [apps]
  resources: [deployments, statefulsets, daemonsets]
  verbs: [get, list, watch, patch]
- apiGroups: [apps.kruise.io]
  resources: [clonesets]
  verbs: [get, list, watch, patch]
- apiGroups: [apps]
  resources: [replicasets]
  verbs: [get, list, watch, patch]
- apiGroups: [apps]
  resources: [controllerrevisions]
  verbs: [get, list, create, patch, delete]
# Needed to set owner references with blockOwnerDeletion (admission plugin OwnerReferencesPermissionEnforcement).
- apiGroups: [apps]
  resources: [deployments/finalizers, statefulsets/finalizers, daemonsets/finalizers]
  verbs: [update]
- apiGroups: [apps.kruise.io]
  resources: [clonesets/finalizers]
  verbs: [update]
# To see whether OpenKruise is installed.
- apiGroups: [apiextensions.k8s.io]
  resources: [customresourcedefinitions]
  verbs: [list, watch]
  resourceNames: [clonesets.apps.kruise.io]
- apiGroups: [app.ops.cloud.alipay.com]
  resources: [changeworkloads/finalizers]
  verbs: [update]
- apiGroups: [app.ops.cloud.alipay.com]
  resources: [changeworkloads]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [app.ops.cloud.alipay.com]
  resources: [changepods]
  verbs: [get, list, watch, create, delete]
- apiGroups: [app.ops.cloud.alipay.com]
  resources:
  - changeworkloads/status
  - changepods/status
  - opsconfiginfoes/status
  - defensepolicies/status
  verbs: [patch]
- apiGroups: [app.ops.cloud.alipay.com]
  resources: [opsconfiginfoes, defensepolicies]
  verbs: [list, watch]
# `get` after a conflict of two writers.
- apiGroups: [app.ops.cloud.alipay.com]
  resources: [poddeletionflowcontrols]
  verbs: [get, list, watch]
- apiGroups: [app.ops.cloud.alipay.com]
  resources: [poddeletionflowcontrols/status]
  verbs: [update]
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
{{- end -}}

{{- define "altershield.reconcilerSystemRules" -}}
- apiGroups: [app.ops.cloud.alipay.com]
  resources: [opsconfiginfoes]
  verbs: [create]
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [get, create, update]
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
