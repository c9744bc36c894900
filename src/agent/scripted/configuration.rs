//! The OpenCode configuration that makes the scripted model its only provider.

use serde_json::json;

/// The provider's name in OpenCode.
pub const PROVIDER: &str = "pinfold-demo";
/// The model's name.
pub const MODEL: &str = "scripted";
/// Where a sandboxed agent finds the model: a name that only the broker knows.
pub const BASE_URL: &str = "http://model.pinfold/v1";

/// The text of an `opencode.json`. Permissions are all granted: the prompts would wait for a person, and what holds
/// a tool is the sandbox.
pub fn configuration(base_url: &str) -> String {
    let model = json!({
        "name": "Scripted model",
        "tool_call": true,
        "limit": {"context": 200_000, "output": 8_000},
    });
    let provider = json!({
        // Bundled with OpenCode: nothing is downloaded for it.
        "npm": "@ai-sdk/openai-compatible",
        "name": "Pinfold's scripted model",
        "options": {"baseURL": base_url, "apiKey": "none"},
        "models": {MODEL: model},
    });
    let name = format!("{PROVIDER}/{MODEL}");
    let whole = json!({
        "$schema": "https://opencode.ai/config.json",
        "provider": {PROVIDER: provider},
        "model": name,
        "small_model": name,
        "enabled_providers": [PROVIDER],
        "autoupdate": false,
        "share": "disabled",
        "permission": "allow",
    });
    format!("{whole:#}\n")
}
