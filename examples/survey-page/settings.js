// What this page asks, and whom it trusts. Change these four lines.

export const collector = "http://127.0.0.1:8321"; // where the collector is reached; https anywhere but on this machine
export const key = "PASTE-THE-PUBLIC-KEY-OF-YOUR-COLLECTOR"; // it signs surveys; no other survey is answered
export const survey = { name: "drinks" }; // its latest wave; { task: "64 hex digits" } asks exactly one survey, for good
export const budget = { lifetime: 2 }; // what a person grants to all surveys of this site together, as epsilon
