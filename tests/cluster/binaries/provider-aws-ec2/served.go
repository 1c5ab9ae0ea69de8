package config

import (
	"context"
	"maps"

	"github.com/crossplane/upjet/v2/pkg/config"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-provider-aws/xpprovider"
)

// The provider configures the resources that these tables name, and panics if Terraform's provider
// does not have one of them. So the tables lose the resources of the services that were left out.
func init() {
	ctx := context.Background()
	framework, sdk, err := xpprovider.GetProvider(ctx)
	if err != nil {
		panic(err)
	}
	served := map[string]bool{}
	for name := range sdk.ResourcesMap {
		served[name] = true
	}
	for _, made := range framework.Resources(ctx) {
		var described resource.MetadataResponse
		made().Metadata(ctx, resource.MetadataRequest{ProviderTypeName: "aws"}, &described)
		served[described.TypeName] = true
	}
	isLeftOut := func(name string, _ config.ExternalName) bool { return !served[name] }
	maps.DeleteFunc(TerraformPluginSDKExternalNameConfigs, isLeftOut)
	maps.DeleteFunc(TerraformPluginFrameworkExternalNameConfigs, isLeftOut)
	maps.DeleteFunc(CLIReconciledExternalNameConfigs, isLeftOut)
}
