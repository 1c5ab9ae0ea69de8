// The backend that the portal is measured beside: Express and @kubernetes/client-node, with three endpoints. It
// lists the claims of a namespace by the API server for each GET, and keeps nothing.
const express = require("express");
const { KubeConfig, CustomObjectsApi } = require("@kubernetes/client-node");

const app = express();
app.use(express.json());

const kc = new KubeConfig();
kc.loadFromDefault();
const k8sApi = kc.makeApiClient(CustomObjectsApi);

const GROUP = "platform.acme.io";
const VERSION = "v1alpha1";
const PLURAL = "gpudevworkspaceclaims";
const NAMESPACE = process.env.NAMESPACE;

function said(what, err) {
  console.error(`${what}:`, err.body ? JSON.stringify(err.body) : err.message);
}

app.post("/api/workspaces", async (req, res) => {
  const { owner, instanceType, opencvVersion } = req.body;
  if (!owner) {
    return res.status(400).json({ error: "Owner field is required." });
  }
  const workspaceName = `ws-${owner.toLowerCase().replace(/[^a-z0-9]/g, "")}-${Date.now()}`;
  const workspaceSpec = {
    apiVersion: `${GROUP}/${VERSION}`,
    kind: "GpuDevWorkspaceClaim",
    metadata: { name: workspaceName, namespace: NAMESPACE },
    spec: {
      parameters: {
        owner,
        instanceType: instanceType || "g4dn.xlarge",
        opencvVersion: opencvVersion || "4.8.0",
        region: "us-east-1",
      },
    },
  };
  try {
    const { body } = await k8sApi.createNamespacedCustomObject(
      GROUP,
      VERSION,
      NAMESPACE,
      PLURAL,
      workspaceSpec,
    );
    res.status(202).json(body);
  } catch (err) {
    said("Failed to create workspace", err);
    res.status(500).json({ error: "Failed to communicate with the Kubernetes API." });
  }
});

app.get("/api/workspaces", async (_req, res) => {
  try {
    const { body } = await k8sApi.listNamespacedCustomObject(GROUP, VERSION, NAMESPACE, PLURAL);
    const workspaces = body.items.map((item) => ({
      name: item.metadata.name,
      owner: item.spec.parameters.owner,
      instanceType: item.spec.parameters.instanceType,
      status: {
        phase: item.status?.phase || "Pending",
        instanceId: item.status?.instanceId,
        publicIp: item.status?.publicIp,
        connection: item.status?.ssh,
      },
      creationTimestamp: item.metadata.creationTimestamp,
    }));
    res.json(workspaces);
  } catch (err) {
    said("Failed to list workspaces", err);
    res.status(500).json({ error: "Failed to list workspaces." });
  }
});

app.delete("/api/workspaces/:name", async (req, res) => {
  const { name } = req.params;
  try {
    await k8sApi.deleteNamespacedCustomObject(GROUP, VERSION, NAMESPACE, PLURAL, name);
    res.status(204).send();
  } catch (err) {
    if (err.statusCode === 404) {
      return res.status(404).json({ error: "Workspace not found." });
    }
    said(`Failed to delete workspace ${name}`, err);
    res.status(500).json({ error: `Failed to delete workspace ${name}.` });
  }
});

app.listen(Number(process.env.PORT), "127.0.0.1");
