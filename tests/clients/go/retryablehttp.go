// go-retryablehttp, HashiCorp's client.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/hashicorp/go-retryablehttp"
)

// What one call came to.
type line struct {
	Status     *int    `json:"status"`
	RetryAfter *string `json:"retry_after"`
	Denied     *string `json:"denied"`
	Error      *string `json:"error"`
}

func header(answer *http.Response, name string) *string {
	value := answer.Header.Get(name)
	if value == "" {
		return nil
	}
	return &value
}

func request(kind, url string) (*retryablehttp.Request, error) {
	switch kind {
	case "get":
		return retryablehttp.NewRequest("GET", url, nil)
	case "post":
		request, err := retryablehttp.NewRequest("POST", url, []byte(`{"order":1}`))
		if err == nil {
			request.Header.Set("Content-Type", "application/json")
		}
		return request, err
	case "upload":
		return retryablehttp.NewRequest("POST", url, bytes.Repeat([]byte("u"), 5_000_000))
	case "chunked":
		// A reader that does not know its length is sent in chunks.
		body := func() (io.Reader, error) {
			return io.MultiReader(bytes.NewReader(bytes.Repeat([]byte("c"), 20_000))), nil
		}
		return retryablehttp.NewRequest("POST", url, body)
	case "expect":
		request, err := retryablehttp.NewRequest("POST", url, bytes.Repeat([]byte("e"), 100_000))
		if err == nil {
			request.Header.Set("Expect", "100-continue")
		}
		return request, err
	}
	return nil, fmt.Errorf("unknown kind %s", kind)
}

func call(client *retryablehttp.Client, kind, url string) (result line) {
	request, err := request(kind, url)
	if err == nil {
		var answer *http.Response
		answer, err = client.Do(request)
		if err == nil {
			_, err = io.Copy(io.Discard, answer.Body)
			answer.Body.Close()
			result.Status = &answer.StatusCode
			result.RetryAfter = header(answer, "Retry-After")
			result.Denied = header(answer, "X-Retry-Denied")
		}
	}
	if err != nil {
		text := err.Error()
		result.Error = &text
	}
	return result
}

func main() {
	attempts, err := strconv.Atoi(os.Args[1])
	if err != nil {
		panic(err)
	}
	client := retryablehttp.NewClient()
	client.HTTPClient.Timeout = 20 * time.Second
	client.RetryMax = attempts - 1
	client.Logger = nil
	client.ErrorHandler = retryablehttp.PassthroughErrorHandler
	client.Backoff = func(_, _ time.Duration, _ int, _ *http.Response) time.Duration {
		return 10 * time.Millisecond
	}
	out := json.NewEncoder(os.Stdout)
	for n := 2; n+1 < len(os.Args); n += 2 {
		if err := out.Encode(call(client, os.Args[n], os.Args[n+1])); err != nil {
			panic(err)
		}
	}
}
