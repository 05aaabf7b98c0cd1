// A Vault in memory for tests: `vault ADDRESS` listens there and prints its URL and root token as JSON. Nothing survives its end.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"

	log "github.com/hashicorp/go-hclog"
	kv "github.com/hashicorp/vault-plugin-secrets-kv"
	"github.com/hashicorp/vault/builtin/credential/approle"
	"github.com/hashicorp/vault/builtin/logical/transit"
	vaulthttp "github.com/hashicorp/vault/http"
	"github.com/hashicorp/vault/internalshared/configutil"
	"github.com/hashicorp/vault/sdk/helper/consts"
	"github.com/hashicorp/vault/sdk/logical"
	"github.com/hashicorp/vault/sdk/physical/inmem"
	"github.com/hashicorp/vault/vault"
)

func fail(doing string, err error) {
	fmt.Fprintf(os.Stderr, "%s: %v\n", doing, err)
	os.Exit(1)
}

// registry names the engines that are compiled in; the catalogue of plugins asks for them by name.
type registry map[string]consts.PluginType

func (r registry) Contains(name string, kind consts.PluginType) bool { return r[name] == kind }
func (r registry) Keys(kind consts.PluginType) []string {
	var names []string
	for name, of := range r {
		if of == kind {
			names = append(names, name)
		}
	}
	return names
}
func (r registry) Get(name string, kind consts.PluginType) (func() (interface{}, error), bool) {
	return nil, r[name] == kind
}
func (r registry) DeprecationStatus(name string, kind consts.PluginType) (consts.DeprecationStatus, bool) {
	return consts.Supported, r[name] == kind
}
func (r registry) IsBuiltinEntPlugin(name string, kind consts.PluginType) bool { return false }

func main() {
	ctx := context.Background()
	logger := log.New(&log.LoggerOptions{Level: log.Warn})
	storage, err := inmem.NewInmem(nil, logger)
	if err != nil {
		fail("storage", err)
	}
	core, err := vault.NewCore(&vault.CoreConfig{
		Physical:           storage,
		LogicalBackends:    map[string]logical.Factory{"kv": kv.Factory, "transit": transit.Factory},
		CredentialBackends: map[string]logical.Factory{"approle": approle.Factory},
		DisableMlock:       true,
		Logger:             logger,
		BuiltinRegistry:    registry{"kv": consts.PluginTypeSecrets, "transit": consts.PluginTypeSecrets, "approle": consts.PluginTypeCredential},
	})
	if err != nil {
		fail("core", err)
	}
	one := &vault.SealConfig{SecretShares: 1, SecretThreshold: 1}
	made, err := core.Initialize(ctx, &vault.InitParams{BarrierConfig: one, RecoveryConfig: one})
	if err != nil {
		fail("initialize", err)
	}
	for _, share := range made.SecretShares {
		if _, err := core.Unseal(share); err != nil {
			fail("unseal", err)
		}
	}
	listener, err := net.Listen("tcp", os.Args[1])
	if err != nil {
		fail("listen", err)
	}
	handler := vaulthttp.Handler.Handler(&vault.HandlerProperties{Core: core, ListenerConfig: &configutil.Listener{}})
	json.NewEncoder(os.Stdout).Encode(map[string]string{"url": "http://" + listener.Addr().String(), "token": made.RootToken})
	fail("serve", http.Serve(listener, handler))
}
