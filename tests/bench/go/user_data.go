package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

const (
	setupPath = "/usr/local/lib/gpu-workspace/setup"
	homeUnit  = "gpu-workspace-home.service"
)

// constantFiles are the files that every workspace gets as they are, by name.
type constantFiles map[string]string

func readConstantFiles(folder string) (constantFiles, error) {
	files := constantFiles{}
	for _, name := range []string{"setup_v1.sh", "setup.sh", "home.sh", "home.service", "sshd.conf"} {
		content, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			return nil, err
		}
		files[name] = string(content)
	}
	return files, nil
}

type cloudConfig struct {
	SSHPasswords bool       `yaml:"ssh_pwauth"`
	Users        []user     `yaml:"users"`
	WriteFiles   []file     `yaml:"write_files"`
	RunCommands  [][]string `yaml:"runcmd"`
}

type user struct {
	Name         string   `yaml:"name"`
	LockPassword bool     `yaml:"lock_passwd"`
	Shell        string   `yaml:"shell"`
	Sudo         string   `yaml:"sudo,omitempty"`
	Keys         []string `yaml:"ssh_authorized_keys,omitempty"`
}

type file struct {
	Path        string `yaml:"path"`
	Permissions string `yaml:"permissions"`
	Content     string `yaml:"content"`
}

type software struct {
	Owner           string `json:"owner"`
	OpenCVVersion   string `json:"opencvVersion"`
	PyTorchVersion  string `json:"pytorchVersion,omitempty"`
	PyTorchPython   string `json:"pytorchPython,omitempty"`
	PyTorchIndexURL string `json:"pytorchIndexUrl,omitempty"`
}

// describe chooses between the image's PyTorch and another version.
func describe(p Parameters, image Image) software {
	described := software{Owner: p.Owner, OpenCVVersion: p.OpenCVVersion, PyTorchVersion: p.PyTorchVersion}
	own := image.PyTorch
	if own.Version != "" && (p.PyTorchVersion == "" || p.PyTorchVersion == own.Version) {
		described.PyTorchVersion, described.PyTorchPython = own.Version, own.Python
	} else if p.PyTorchVersion != "" {
		described.PyTorchIndexURL = image.PyTorchIndexURL
	}
	return described
}

func userData(p Parameters, described software, keys []string, policy *Policy, constant constantFiles) (string, error) {
	description, err := json.Marshal(described)
	if err != nil {
		return "", err
	}
	developer := user{Name: "developer", LockPassword: true, Shell: "/bin/bash"}
	if policy.Instance.Sudo {
		developer.Sudo = "ALL=(ALL) NOPASSWD:ALL"
	}
	files := []file{
		{"/etc/gpu-workspace/workspace.json", "0644", string(description) + "\n"},
		{"/etc/gpu-workspace/requirements.txt", "0644", requirements(p.OpenCVVersion)},
		{setupPath, "0755", constant["setup.sh"]},
	}
	if policy.BehaviourVersion == "v1" {
		files[2].Content = constant["setup_v1.sh"]
	}
	var commands [][]string
	if p.Home.SizeGiB > 0 {
		files = append(files,
			file{"/usr/local/lib/gpu-workspace/home", "0755", constant["home.sh"]},
			file{"/etc/systemd/system/" + homeUnit, "0644", constant["home.service"]},
			file{"/etc/ssh/sshd_config.d/10-gpu-workspace.conf", "0644", constant["sshd.conf"]},
			file{"/etc/gpu-workspace/keys/developer", "0644", strings.Join(append(keys, ""), "\n")},
		)
		commands = append(commands,
			[]string{"systemctl", "daemon-reload"},
			[]string{"systemctl", "enable", homeUnit},
			[]string{"systemctl", "start", "--no-block", homeUnit},
		)
	} else {
		developer.Keys = keys
	}
	config, err := yaml.Marshal(cloudConfig{
		Users:       []user{developer},
		WriteFiles:  files,
		RunCommands: append(commands, []string{setupPath}),
	})
	return "#cloud-config\n" + string(config), err
}

// requirements pins OpenCV. Releases before 4.10 are built against NumPy 1.
func requirements(opencv string) string {
	line := "opencv-python-headless==" + opencv
	parts := strings.Split(opencv, ".")
	if len(parts) <= 3 {
		line += ".*"
	}
	major, _ := strconv.Atoi(parts[0])
	minor := 0
	if len(parts) > 1 {
		minor, _ = strconv.Atoi(parts[1])
	}
	if major < 4 || major == 4 && minor < 10 {
		line += "\nnumpy<2"
	}
	return line + "\n"
}
