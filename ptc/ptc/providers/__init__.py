"""How the loop reaches a service that speaks the Responses API: the seam, and the `openai` client."""
